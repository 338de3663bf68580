// SPDX-License-Identifier: Apache-2.0
'use strict';

const byId = (id) => document.getElementById(id);

// A new element with text; text never becomes markup.
function make(tag, text, className = '') {
  const element = document.createElement(tag);
  element.textContent = text;
  element.className = className;
  return element;
}

// What is to say of frames: in the tooltip and below the picture.
class Details {
  constructor(data, palette) {
    this.data = data;
    this.palette = palette;
    this.all = 0;  // samples of everything
  }

  name(tree, node) {
    const frame = tree.frameOf(node);
    return frame < 0 ? 'all' : this.data.frames[frame].name;
  }

  numbers(tree, node) {
    const samples = tree.total[node];
    const own = tree.self[node];
    const parts = [`${samples} ${this.data.unit}, ${percent(samples / this.all)} of all`];
    if (node !== 0) {
      const parent = tree.total[tree.parent[node]];
      parts.push(`${percent(samples / parent)} of the ${tree.parentIs}`);
    }
    if (tree.parentIs === 'caller') {
      parts.push(`${own} (${percent(own / this.all)}) in itself`);
    }
    let text = parts.join(', ');
    if (tree.other) text += `; ${this.palette.change(tree, node).details()}`;
    return text;
  }

  // Kind, file and line.
  origin(tree, node) {
    const frame = tree.frameOf(node);
    if (frame < 0) return '';
    if (frame === this.data.parkedFrame) {
      return 'threads that wait at one place; a click shows where';
    }
    const {kind, module} = this.data.frames[frame];
    return [KINDS[kind].name, module, this.data.place(tree, node)]
        .filter((text) => text !== '').join(', ');
  }

  // All of it in one line, for a picture's title.
  line(tree, node) {
    return `${this.name(tree, node)}: ${this.numbers(tree, node)}`;
  }

  // Beside the pointer, whole.
  showTip(tree, node, {clientX, clientY}) {
    const tip = byId('tip');
    tip.replaceChildren(make('div', this.name(tree, node), 'name'),
                        make('div', this.numbers(tree, node)),
                        make('span', this.origin(tree, node)));
    tip.hidden = false;
    const {width, height} = tip.getBoundingClientRect();
    const left = Math.min(clientX + 14, innerWidth - width - 6);
    const isBelow = clientY + 18 + height < innerHeight;
    tip.style.left = `${Math.max(4, left)}px`;
    tip.style.top =
        `${Math.max(4, isBelow ? clientY + 18 : clientY - height - 10)}px`;
  }

  hideTip() {
    byId('tip').hidden = true;
  }

  // Below the picture; buttons: what can be done with the node.
  show(tree, node, buttons) {
    const name = cutEnd(this.name(tree, node), MOST_LETTERS);
    byId('detail').replaceChildren(
        make('b', name, 'name'), make('div', this.numbers(tree, node)),
        make('span', this.origin(tree, node)), ...buttons);
  }
}

// The texts about the kind of samples that is shown.
function describeKind({title, about}) {
  document.title = title;
  byId('title').textContent = title;
  const facts = new Map(about);
  byId('facts').textContent =
      ['began', 'duration', 'event', 'measured in']
          .filter((key) => facts.get(key))
          .map((key) => key === 'measured in' ?
              `measured in ${facts.get(key)}` : facts.get(key)).join(' · ');
  byId('about').replaceChildren();
  for (const [key, value] of about) {
    const row = document.createElement('tr');
    row.append(make('td', key), make('td', value));
    byId('about').append(row);
  }
}

// What does not change while the page is open.
function describeCapture(data) {
  const {json} = data;
  const isOurs = json.about.some(([key]) => key === 'began');
  byId('loss').textContent = json.loss || (isOurs ? 'no samples lost' : '');
  byId('loss').classList.toggle('none', json.loss === '');
  const explain = (colour, name) => {
    const entry = document.createElement('span');
    const sample = document.createElement('i');
    sample.style.background = colour;
    entry.append(sample, name);
    byId('legend').append(entry);
  };
  if (data.isDifference) {
    byId('grouping').textContent = 'Widths of';
    explain(changeColour(1, 1), 'more than before');
    explain(SAME_COLOUR, 'within the sampling error');
    explain(changeColour(-1, 1), 'less than before');
    return;
  }
  const used = new Set();
  for (const frame of data.frame) used.add(data.frames[frame].kind);
  KINDS.forEach(({hue, saturation, light, name}, kind) => {
    if (used.has(kind)) explain(`hsl(${hue} ${saturation}% ${light}%)`, name);
  });
}
