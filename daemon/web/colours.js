// SPDX-License-Identifier: Apache-2.0
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
  {name: 'Python', hue: 20, saturation: 80, light: 70},
  {name: 'JavaScript', hue: 140, saturation: 38, light: 66},
  {name: 'Java', hue: 180, saturation: 38, light: 64},
];
const ROOT_COLOUR = 'hsl(0 0% 88%)';
const SAME_COLOUR = 'hsl(220 5% 80%)';

function textHash(text) {
  let hash = 2166136261;
  for (let i = 0; i < text.length; ++i) {
    hash = Math.imul(hash ^ text.charCodeAt(i), 16777619);
  }
  return hash >>> 0;
}

// Neighbours of one kind differ a little in lightness, by name.
function frameColour({kind, name}) {
  const {hue, saturation, light} = KINDS[kind];
  const shade = (textHash(name) % 13) - 6;
  return `hsl(${hue} ${saturation}% ${light + shade}%)`;
}

// The same while other frames are highlighted: nearly as what is behind them.
function dimColour({kind, name}, isDark) {
  const {hue, saturation} = KINDS[kind];
  const shade = (textHash(name) % 5) - 2;
  return `hsl(${hue} ${saturation / 5}% ${(isDark ? 27 : 85) + shade}%)`;
}

// For a difference: red is more than before, blue less.
function changeColour(change, largest) {
  const strength = largest > 0 ? Math.sqrt(Math.abs(change) / largest) : 0;
  return `hsl(${change > 0 ? 8 : 215} ${Math.round(85 * strength)}% ` +
      `${Math.round(92 - 28 * strength)}%)`;
}

function percent(share) {
  return `${(100 * (share || 0)).toFixed(2)} %`;
}

// What numbers of samples mean in a difference: CPUs or shares.
class Change {
  // after, before: samples.
  constructor(after, before, measure) {
    this.measure = measure;
    this.after = after * measure.after;
    this.before = before * measure.before;
    this.size = this.after - this.before;
    // Two counts whose errors are their square roots, as `diff` judges them.
    const error = Math.hypot(Math.sqrt(after) * measure.after,
                             Math.sqrt(before) * measure.before);
    this.isSure = Math.abs(this.size) > 2 * error;
  }

  static usage(value, measure) {
    return measure.unit ? value.toFixed(3) : percent(value);
  }
  text() {
    return (this.size < 0 ? '\u2212' : '+') +
        Change.usage(Math.abs(this.size), this.measure);
  }
  details() {
    const unit = this.measure.unit ? ` ${this.measure.unit}` : '';
    return `${Change.usage(this.after, this.measure)}${unit}, before ` +
        `${Change.usage(this.before, this.measure)} (${this.text()}` +
        `${this.isSure ? '' : ', within the sampling error'})`;
  }
}

// The colours of one profile's boxes.
class Palette {
  constructor(data) {
    this.data = data;
    this.bright = [];  // by frame
    this.dim = {light: [], dark: []};
    this.isDark = false;
    this.largest = 0;
  }

  // Before nodes of a tree are asked for.
  use(tree, grouping) {
    this.grouping = grouping;
    this.largest = 0;
    if (!tree.other) return;
    for (let i = 1; i < tree.parent.length; ++i) {
      const {size} = this.change(tree, i);
      this.largest = Math.max(this.largest, Math.abs(size));
    }
  }

  change(tree, node) {
    const [after, before] = this.grouping === 'before' ?
        [tree.other, tree.total] : [tree.total, tree.other];
    return new Change(after[node], before[node], this.data.json.measure);
  }

  colour(tree, node, dim) {
    const frame = tree.frameOf(node);
    if (dim) {
      const known = this.isDark ? this.dim.dark : this.dim.light;
      return known[Math.max(frame, 0)] ??=
          dimColour(this.data.frames[Math.max(frame, 0)], this.isDark);
    }
    if (frame < 0) return ROOT_COLOUR;
    if (tree.other) {
      const change = this.change(tree, node);
      return change.isSure ? changeColour(change.size, this.largest) :
                             SAME_COLOUR;
    }
    return this.bright[frame] ??= frameColour(this.data.frames[frame]);
  }
}
