// SPDX-License-Identifier: Apache-2.0
'use strict';

const MIN_PIXELS = 0.7;  // narrower frames are not drawn

// Where the frames of a tree stand: rows of boxes, each from left to right,
// with places and widths as shares of the whole width, so that they hold for
// paper as well, whose width no script learns. Row 0 has the zoomed frame; of
// what the zoom left, its caller alone is there, in the row before.
class Layout {
  // zoomed: a node. pixels: the width. byWeight: (node) => whether its children
  // are in the order of their weight. rootless: without the root itself.
  constructor(tree, {zoomed, pixels, byWeight, rootless}) {
    this.tree = tree;
    this.zoomed = zoomed;
    this.rows = [];
    this.firstDepth = tree.depth[zoomed] + (rootless ? 1 : 0);
    const whole = tree.total[zoomed];
    if (zoomed !== 0) {
      --this.firstDepth;
      this.add(tree.parent[zoomed], 0, 1);
    }
    if (whole <= 0) {
      if (!rootless) this.add(zoomed, 0, 1);
      return;
    }
    const least = whole * MIN_PIXELS / Math.max(1, pixels);
    const next = [{node: zoomed, left: 0}];
    while (next.length > 0) {
      const {node, left} = next.pop();
      this.add(node, left / whole, tree.total[node] / whole);
      const children = tree.children(node, least, byWeight(node));
      for (let i = children.length - 1; i >= 0; --i) {
        next.push({node: children[i].node, left: left + children[i].before});
      }
    }
  }

  add(node, left, width) {
    const row = this.rowOf(node);
    if (row < 0) return;
    while (this.rows.length <= row) {
      this.rows.push({nodes: [], lefts: [], widths: []});
    }
    const boxes = this.rows[row];
    boxes.nodes.push(node);
    boxes.lefts.push(left);
    boxes.widths.push(width);
  }

  rowOf(node) {
    return this.tree.depth[node] - this.firstDepth;
  }

  // Whether a node is one that the zoom left.
  isLeft(node) {
    return this.zoomed !== 0 && node === this.tree.parent[this.zoomed];
  }

  // The box of a node, or null.
  find(node) {
    const row = this.rowOf(node);
    const boxes = this.rows[row];
    const at = boxes ? boxes.nodes.indexOf(node) : -1;
    return at < 0 ? null :
        {node, row, left: boxes.lefts[at], width: boxes.widths[at]};
  }

  // The node at a place in a row, from 0 to 1; -1: none.
  at(row, share) {
    const boxes = this.rows[row];
    if (!boxes) return -1;
    let low = 0, high = boxes.nodes.length;  // the last that begins before it
    while (low < high) {
      const middle = (low + high) >> 1;
      if (boxes.lefts[middle] <= share) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    const found = low - 1;
    return found >= 0 && share < boxes.lefts[found] + boxes.widths[found] ?
        boxes.nodes[found] : -1;
  }

  // A box beside that of a node, or -1.
  neighbour(node, step) {
    const boxes = this.rows[this.rowOf(node)];
    const at = boxes ? boxes.nodes.indexOf(node) : -1;
    return at < 0 ? -1 : boxes.nodes[at + step] ?? -1;
  }
}
