'use strict';

// Kinds of frames, in the order of FlameKind. The hues are Okabe and Ito's,
// which people with any colour vision can tell apart, lightened so that black
// text can be read on them.
const KINDS = [
  {name: 'command', hue: 0, saturation: 0, light: 82},
  {name: 'user', hue: 41, saturation: 85, light: 66},
  {name: 'kernel', hue: 202, saturation: 72, light: 72},
  {name: 'generated code', hue: 164, saturation: 45, light: 62},
  {name: 'BPF', hue: 327, saturation: 52, light: 76},
  {name: 'unknown', hue: 220, saturation: 6, light: 70},
  {name: 'inlined', hue: 56, saturation: 85, light: 70},
];

const ROW_PIXELS = 18;
const MIN_PIXELS = 0.7;
const MIN_TEXT_PIXELS = 22;

function textHash(text) {
  let hash = 2166136261;
  for (let i = 0; i < text.length; ++i) {
    hash = Math.imul(hash ^ text.charCodeAt(i), 16777619);
  }
  return hash >>> 0;
}

// Neighbours of one kind differ a little in lightness, by name.
function frameColour(frame) {
  const kind = KINDS[frame.kind];
  const shade = (textHash(frame.name) % 13) - 6;
  return `hsl(${kind.hue} ${kind.saturation}% ${kind.light + shade}%)`;
}

// Of a difference: red is more than before, blue less, white the same.
function changeColour(change, largest) {
  const strength = largest > 0 ? Math.sqrt(Math.abs(change) / largest) : 0;
  return `hsl(${change > 0 ? 8 : 215} ${Math.round(85 * strength)}% ` +
      `${Math.round(92 - 28 * strength)}%)`;
}

function formatUsage(value, measure) {
  return measure.unit ? value.toFixed(3) : `${(100 * value).toFixed(2)} %`;
}

function formatChange(before, after, measure) {
  return (after < before ? '\u2212' : '+') +
      formatUsage(Math.abs(after - before), measure);
}

// Draws a tree into an element: one element per frame that is wide enough to
// see, so that text can be selected, found and printed.
class FlameView {
  constructor(element, data) {
    this.element = element;
    this.data = data;
    // On top they are in sight, however deep a stack is.
    this.rootsBelow = false;
    this.hit = null;  // by frame, while searching
    this.shown = new Map();  // node -> element
    this.focused = -1;
    this.setGrouping(data.groupings()[0]);
  }

  setGrouping(grouping) {
    this.grouping = grouping;
    this.tree = this.data.tree(grouping);
    this.colours = this.tree.other ? this.changeColours() :
                                     this.data.frames.map(frameColour);
    this.zoomed = 0;
    this.focused = -1;
    if (this.pattern) this.search(this.pattern);
  }

  // By node.
  changeColours() {
    const changes = new Float64Array(this.tree.parent.length);
    let largest = 0;
    for (let i = 1; i < changes.length; ++i) {
      const {after, before} = this.data.usage(this.grouping, i);
      changes[i] = after - before;
      largest = Math.max(largest, Math.abs(changes[i]));
    }
    return Array.from(changes, (change) => changeColour(change, largest));
  }

  zoom(node) {
    this.zoomed = node;
    this.draw();
  }

  search(pattern) {
    this.pattern = pattern;
    this.hit = pattern ?
        this.data.frames.map((frame) => pattern.test(frame.name)) : null;
  }

  // The deepest row that has something to see below the zoomed node.
  rows() {
    const {tree, zoomed} = this;
    const least = this.leastSamples();
    let deepest = tree.depth[zoomed];
    for (let i = zoomed; i < tree.end[zoomed];) {
      if (tree.total[i] < least) {
        i = tree.end[i];
        continue;
      }
      if (tree.depth[i] > deepest) deepest = tree.depth[i];
      ++i;
    }
    return deepest + 1;
  }

  leastSamples() {
    return this.tree.total[this.zoomed] * MIN_PIXELS /
        Math.max(1, this.element.clientWidth);
  }

  draw() {
    const {tree, zoomed, element} = this;
    const rows = this.rows();
    const least = this.leastSamples();
    const whole = Math.max(1, tree.total[zoomed]);
    const fragment = document.createDocumentFragment();
    this.shown.clear();
    element.style.height = `${rows * ROW_PIXELS}px`;
    const top = (node) => ROW_PIXELS *
        (this.rootsBelow ? rows - 1 - tree.depth[node] : tree.depth[node]);
    for (let node = tree.parent[zoomed]; node !== zoomed;
         node = tree.parent[node]) {
      this.add(fragment, node, 0, 1, top(node)).classList.add('under');
      if (node === 0) break;
    }
    for (let i = zoomed; i < tree.end[zoomed];) {
      if (tree.total[i] < least) {
        i = tree.end[i];
        continue;
      }
      this.add(fragment, i, (tree.start[i] - tree.start[zoomed]) / whole,
               tree.total[i] / whole, top(i));
      ++i;
    }
    element.classList.toggle('searching', this.hit !== null);
    element.replaceChildren(fragment);
    this.mark(this.focused);
  }

  // `left` and `width`: as shares of the element's width, so that they hold
  // for paper as well, whose width no script learns.
  add(fragment, node, left, width, top) {
    const frame = this.tree.frame[node];
    const box = document.createElement('div');
    box.className = 'f';
    box.dataset.node = node;
    box.style.cssText = `left:${(100 * left).toFixed(4)}%;top:${top}px;` +
        `width:max(0.5px,${(100 * width).toFixed(4)}% - 0.5px);` +
        `--c:${node === 0 ? 'hsl(0 0% 88%)' :
                            this.colours[this.tree.other ? node : frame]}`;
    if (width * this.element.clientWidth >= MIN_TEXT_PIXELS) {
      box.textContent = this.name(node);
    } else {
      box.classList.add('thin');
    }
    if (node !== 0 && this.hit?.[frame]) box.classList.add('hit');
    this.shown.set(node, box);
    fragment.append(box);
    return box;
  }

  name(node) {
    return node === 0 ? 'all' : this.data.frames[this.tree.frame[node]].name;
  }

  mark(node) {
    this.shown.get(this.focused)?.classList.remove('focus');
    this.focused = node;
    this.shown.get(node)?.classList.add('focus');
  }

  // Where an arrow key leads from the focused node; -1: nowhere.
  neighbour(key) {
    const from = this.focused < 0 ? this.zoomed : this.focused;
    const {tree} = this;
    if (key === 'ArrowLeft') return tree.siblingBefore(from);
    if (key === 'ArrowRight') return tree.siblingAfter(from);
    const towardsRoot = (key === 'ArrowDown') === this.rootsBelow;
    if (!towardsRoot) return tree.heaviestChild(from);
    return from === 0 ? -1 : tree.parent[from];
  }

  // What is to say of a node's change; '' if nothing is compared.
  change(node) {
    if (!this.tree.other) return '';
    const {measure} = this.data.json;
    const {after, before} = this.data.usage(this.grouping, node);
    const unit = measure.unit ? ` ${measure.unit}` : '';
    return `${formatUsage(after, measure)}${unit}, ` +
        `before ${formatUsage(before, measure)} ` +
        `(${formatChange(before, after, measure)})`;
  }

  details(node) {
    const {tree} = this;
    const samples = tree.total[node];
    const frame = node === 0 ? null : this.data.frames[tree.frame[node]];
    return {
      name: this.name(node),
      samples,
      ofAll: samples / tree.total[0],
      ofParent: samples / tree.total[tree.parent[node]],
      module: frame?.module ?? '',
      kind: frame ? KINDS[frame.kind].name : '',
      place: this.data.place(tree, node),
      change: this.change(node),
    };
  }
}
