// SPDX-License-Identifier: Apache-2.0
'use strict';

// Numbers, as many as there will be.
class Numbers {
  constructor(Type) {
    this.all = new Type(1024);
    this.size = 0;
  }
  reserve(size) {
    if (size <= this.all.length) return;
    const Type = this.all.constructor;
    const larger = new Type(Math.max(size, 2 * this.all.length));
    larger.set(this.all);
    this.all = larger;
  }
  push(value) {
    if (this.size === this.all.length) this.reserve(this.size + 1);
    this.all[this.size++] = value;
  }
  done() {
    return this.all.slice(0, this.size);
  }
}

// A tree of frames in arrays. Node 0 is the root; a node's subtree follows it,
// so that sums need one pass and no recursion. What the nodes are never
// changes; how many samples they have does, with each filter: a tree is weighed
// before it is used.
class Tree {
  // parent, frame: of each node. rootFrame: what the root stands for, or -1
  // for everything.
  constructor(parent, frame, rootFrame = -1) {
    const count = parent.length;
    this.parent = parent;
    this.frame = frame;
    this.rootFrame = rootFrame;
    this.parentIs = 'caller';  // or 'callee', in a tree that is upside down
    this.depth = new Uint32Array(count);
    this.end = new Uint32Array(count);  // one past the last of the subtree
    for (let i = 0; i < count; ++i) this.end[i] = i + 1;
    for (let i = count - 1; i > 0; --i) {
      const p = parent[i];
      if (this.end[p] < this.end[i]) this.end[p] = this.end[i];
    }
    for (let i = 1; i < count; ++i) this.depth[i] = this.depth[parent[i]] + 1;
  }

  // self: samples that end in each node. other: the same of the profile that
  // this one is compared with, or null. Both are kept.
  weigh(self, other) {
    this.self = self;
    this.otherSelf = other;
    this.total = self.slice();
    this.other = other && other.slice();
    for (let i = self.length - 1; i > 0; --i) {
      const p = this.parent[i];
      this.total[p] += this.total[i];
      if (other) this.other[p] += this.other[i];
    }
  }

  // The frame of a node; -1 of a root that stands for everything.
  frameOf(node) {
    return node === 0 ? this.rootFrame : this.frame[node];
  }

  // Nodes from below the root down to `node`.
  pathTo(node) {
    const path = [];
    for (; node !== 0; node = this.parent[node]) path.push(node);
    return path.reverse();
  }

  // The children with at least `least` samples, in the order of their names
  // or the heaviest first, each with the samples to its left under its parent.
  children(node, least, byWeight) {
    const children = [];
    let before = 0;
    for (let i = node + 1; i < this.end[node]; i = this.end[i]) {
      const total = this.total[i];
      if (total > 0 && total >= least) children.push({node: i, before});
      before += total;
    }
    if (!byWeight) return children;
    children.sort(
        (a, b) => this.total[b.node] - this.total[a.node] || a.node - b.node);
    before = 0;
    for (const child of children) {
      child.before = before;
      before += this.total[child.node];
    }
    return children;
  }

  // Samples in frames that are `hit`: each counted once, however often its
  // stack has such a frame.
  matched(hit) {
    if (this.rootFrame >= 0 && hit[this.rootFrame]) return this.total[0];
    let sum = 0;
    for (let i = 1; i < this.parent.length;) {
      if (hit[this.frame[i]]) {
        sum += this.total[i];
        i = this.end[i];
      } else {
        ++i;
      }
    }
    return sum;
  }
}
