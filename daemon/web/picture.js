// SPDX-License-Identifier: Apache-2.0
'use strict';

const ROW_PIXELS = 18;
const MIN_TEXT_PIXELS = 24;
const ROWS_BEYOND = 12;  // drawn above and below what is in sight
// What a canvas can be in all browsers, and what is worth the memory.
const MOST_CANVAS_PIXELS = 8192;

let pictures = 0;

// Whether the page is dark; paper never is.
function isDark() {
  const {theme} = document.documentElement.dataset;
  if (matchMedia('print').matches) return false;
  return theme ? theme === 'dark' :
      matchMedia('(prefers-color-scheme: dark)').matches;
}

// Draws a tree into an element that scrolls: frames wide enough for text are
// elements, so that text can be selected, found and printed; narrow ones are
// painted on a canvas behind them. Only rows in sight are there.
class Picture {
  // label: what the tree is, for who cannot see it.
  constructor(element, {data, palette, label}) {
    this.element = element;
    this.data = data;
    this.palette = palette;
    this.id = `p${pictures++}`;
    this.sheet = document.createElement('div');
    this.sheet.className = 'sheet';
    this.sheet.setAttribute('role', 'tree');
    this.sheet.setAttribute('aria-label', label);
    this.sheet.tabIndex = 0;
    this.canvas = document.createElement('canvas');
    this.canvas.setAttribute('aria-hidden', 'true');
    this.boxes = document.createElement('div');
    this.boxes.setAttribute('role', 'presentation');
    this.sheet.append(this.canvas, this.boxes);
    element.append(this.sheet);
    this.lit = null;
    this.focused = -1;
    this.shown = new Map();  // node -> element
    this.fromRoots = 0;  // pixels that the root's edge is out of sight
    element.addEventListener('scroll', () => {
      const {scrollTop} = element;
      // Where the size has changed since, the next drawing keeps what was in
      // sight when it was drawn last.
      if (this.mostScroll() === this.drawnScroll) {
        this.fromRoots = this.options?.rootsBelow ?
            this.drawnScroll - scrollTop : scrollTop;
      }
      this.paint();
    });
  }

  // The tree as its options say: see Layout, and rootsBelow: where row 0 is.
  show(tree, options) {
    this.tree = tree;
    this.options = options;
    this.focused = -1;
    this.fromRoots = 0;
    this.draw();
  }

  // By frame, what is to be seen among the rest; null: everything.
  light(lit, anew) {
    this.lit = lit;
    if (this.tree && anew) this.paint(true);
  }

  draw() {
    if (!this.tree || this.element.clientWidth === 0) return;
    this.width = this.element.clientWidth;
    this.layout = new Layout(this.tree, {...this.options, pixels: this.width});
    this.sheet.style.height = `${this.layout.rows.length * ROW_PIXELS}px`;
    this.letter ??= this.letterWidth();
    this.drawnScroll = this.mostScroll();
    this.element.scrollTop = this.options.rootsBelow ?
        this.drawnScroll - this.fromRoots : this.fromRoots;
    this.paint(true);
  }

  mostScroll() {
    return this.element.scrollHeight - this.element.clientHeight;
  }

  letterWidth() {
    const context = this.canvas.getContext('2d');
    context.font = getComputedStyle(this.sheet).font;
    return context.measureText('M'.repeat(20)).width / 20 || 7;
  }

  // The row at a place from the sheet's top, and back.
  flip(row) {
    return this.options.rootsBelow ? this.layout.rows.length - 1 - row : row;
  }

  // The lines (rows from the top) that are to be drawn.
  lines() {
    const count = this.layout.rows.length;
    if (matchMedia('print').matches) return {first: 0, end: count};
    const {scrollTop, clientHeight} = this.element;
    const top = scrollTop - this.sheet.offsetTop;
    return {
      first: Math.max(0, Math.floor(top / ROW_PIXELS)),
      end: Math.min(count, Math.ceil((top + clientHeight) / ROW_PIXELS)),
    };
  }

  // What is in sight, unless it is there; `anew`: in any case.
  paint(anew = false) {
    if (!this.layout) return;
    const {first, end} = this.lines();
    if (!anew && first >= this.first && end <= this.end) return;
    this.first = Math.max(0, first - ROWS_BEYOND);
    this.end = Math.min(this.layout.rows.length, end + ROWS_BEYOND);
    this.palette.isDark = isDark();
    const context = this.clearCanvas();
    const fragment = document.createDocumentFragment();
    this.shown.clear();
    for (let line = this.first; line < this.end; ++line) {
      this.paintRow(line, context, fragment);
    }
    this.boxes.replaceChildren(fragment);
    this.mark(this.focused);
  }

  clearCanvas() {
    const {canvas} = this;
    const height = Math.max(1, this.end - this.first) * ROW_PIXELS;
    const scale = Math.min(devicePixelRatio || 1, MOST_CANVAS_PIXELS / height,
                           MOST_CANVAS_PIXELS / this.width);
    canvas.width = Math.round(this.width * scale);
    canvas.height = Math.round(height * scale);
    canvas.style.cssText =
        `top:${this.first * ROW_PIXELS}px;height:${height}px`;
    const context = canvas.getContext('2d');
    context.setTransform(canvas.width, 0, 0, scale, 0, 0);
    return context;
  }

  paintRow(line, context, fragment) {
    const {nodes, lefts, widths} = this.layout.rows[this.flip(line)];
    const gap = 0.5 / this.width;
    const top = (line - this.first) * ROW_PIXELS;
    for (let i = 0; i < nodes.length; ++i) {
      const node = nodes[i];
      if (widths[i] * this.width >= MIN_TEXT_PIXELS) {
        fragment.append(this.makeBox(node, line, lefts[i], widths[i]));
        continue;
      }
      context.fillStyle = this.colour(node);
      context.fillRect(lefts[i], top, Math.max(gap, widths[i] - gap),
                       ROW_PIXELS - 1);
    }
  }

  isLit(node) {
    const frame = this.tree.frameOf(node);
    return frame >= 0 && Boolean(this.lit?.[frame]);
  }

  isDim(node) {
    return this.lit !== null && !this.isLit(node);
  }

  colour(node) {
    return this.palette.colour(this.tree, node, this.isDim(node));
  }

  makeBox(node, line, left, width) {
    const box = document.createElement('div');
    box.className = 'f';
    box.id = `${this.id}-${node}`;
    box.setAttribute('role', 'treeitem');
    box.style.cssText = `left:${(100 * left).toFixed(4)}%;` +
        `top:${line * ROW_PIXELS}px;` +
        `width:max(0.5px,${(100 * width).toFixed(4)}% - 0.5px);` +
        `--c:${this.colour(node)}`;
    box.textContent = this.label(node, width);
    if (this.isLit(node)) box.classList.add('hit');
    if (this.isDim(node)) box.classList.add('dim');
    if (this.layout.isLeft(node)) box.classList.add('under');
    this.shown.set(node, box);
    return box;
  }

  name(node) {
    const frame = this.tree.frameOf(node);
    return frame < 0 ? 'all' : this.data.frames[frame].name;
  }

  // What stands in a box; '' in a narrow one.
  label(node, width) {
    const pixels = width * this.width;
    if (pixels < MIN_TEXT_PIXELS) return '';
    const letters = Math.floor((pixels - 5) / this.letter);
    const frame = this.tree.frameOf(node);
    return frame < 0 ? cutEnd('all', letters) :
                       fitFrame(this.data.frames[frame], letters);
  }

  // The node under the pointer, or -1.
  nodeAt({clientX, clientY}) {
    if (!this.layout) return -1;
    const at = this.sheet.getBoundingClientRect();
    const line = Math.floor((clientY - at.top) / ROW_PIXELS);
    if (line < 0 || line >= this.layout.rows.length) return -1;
    return this.layout.at(this.flip(line), (clientX - at.left) / at.width);
  }

  // The node that the keyboard is at; a narrow one has an element while it is.
  mark(node) {
    const before = this.shown.get(this.focused);
    before?.classList.remove('focus');
    if (before?.classList.contains('thin')) {
      before.remove();
      this.shown.delete(this.focused);
    }
    this.focused = node;
    const found = node < 0 ? null : this.layout.find(node);
    if (!found) {
      this.sheet.removeAttribute('aria-activedescendant');
      return;
    }
    let box = this.shown.get(node);
    if (!box) {
      box = this.makeBox(node, this.flip(found.row), found.left, found.width);
      if (found.width * this.width < MIN_TEXT_PIXELS) box.classList.add('thin');
      this.boxes.append(box);
    }
    box.classList.add('focus');
    box.setAttribute('aria-level', this.tree.depth[node] + 1);
    const share = percent(this.tree.total[node] / this.tree.total[0]);
    box.setAttribute('aria-label',
                     `${cutEnd(this.name(node), MOST_LETTERS)}, ${share}`);
    this.sheet.setAttribute('aria-activedescendant', box.id);
  }

  // Scrolls until a node is in sight.
  reveal(node) {
    const found = this.layout?.find(node);
    if (!found) return;
    const top = this.flip(found.row) * ROW_PIXELS + this.sheet.offsetTop;
    const {element} = this;
    if (top < element.scrollTop) element.scrollTop = top - ROW_PIXELS;
    const least = top + 2 * ROW_PIXELS - element.clientHeight;
    if (element.scrollTop < least) element.scrollTop = least;
    this.paint();
  }

  // Where an arrow key leads from the focused node; -1: nowhere.
  neighbour(key) {
    const {tree, layout} = this;
    const from = this.focused < 0 ? this.options.zoomed : this.focused;
    if (key === 'ArrowLeft') return layout.neighbour(from, -1);
    if (key === 'ArrowRight') return layout.neighbour(from, 1);
    if ((key === 'ArrowDown') === this.options.rootsBelow) {
      return from === 0 ? -1 : tree.parent[from];
    }
    return tree.children(from, 0, true)[0]?.node ?? -1;
  }

  // All boxes as text of SVG, `top` pixels from its upper edge.
  svgBoxes(top, title) {
    const boxes = [];
    this.layout.rows.forEach(({nodes, lefts, widths}, row) => {
      const y = top + this.flip(row) * ROW_PIXELS;
      nodes.forEach((node, i) => boxes.push(svgBox(
          {left: lefts[i] * this.width, top: y, width: widths[i] * this.width},
          {title: title(this.tree, node), label: this.label(node, widths[i]),
           colour: this.colour(node)})));
    });
    return boxes;
  }
}
