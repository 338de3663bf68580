// SPDX-License-Identifier: Apache-2.0
'use strict';

// By function: samples that end in it, and samples that have it anywhere in
// their stack, counted once. The others are those of the profile that this one
// is compared with.
function functionTotals(tree, {functions, functionOf}) {
  const sums = () => new Float64Array(functions.length);
  const totals = {self: sums(), total: sums(), otherSelf: sums(),
                  otherTotal: sums()};
  const open = new Uint32Array(functions.length);  // where its subtree ends
  for (let i = 1; i < tree.parent.length; ++i) {
    const f = functionOf[tree.frame[i]] ?? -1;
    if (f < 0) continue;
    totals.self[f] += tree.self[i];
    if (tree.other) totals.otherSelf[f] += tree.otherSelf[i];
    if (i < open[f]) continue;
    open[f] = tree.end[i];
    totals.total[f] += tree.total[i];
    if (tree.other) totals.otherTotal[f] += tree.other[i];
  }
  return totals;
}

// Nodes of a function that no other of its nodes leads to, so that no sample
// is counted twice.
function outermostNodes(tree, functionOf, wanted) {
  const nodes = [];
  for (let i = 1; i < tree.parent.length;) {
    if (functionOf[tree.frame[i]] !== wanted) {
      ++i;
      continue;
    }
    if (tree.total[i] > 0 || tree.other?.[i] > 0) nodes.push(i);
    i = tree.end[i];
  }
  return nodes;
}

const MOST_SLOTS = 2 ** 26;  // frames in a profile, of 2^53
const GROUPS_AT_ONCE = 256;  // between two looks at the clock

// Merges nodes of a tree that have the same frame, then what follows them on
// the way to the root ('callers') or to the leaves ('callees'), and so on. The
// nodes of a group wait at the end of one list until their turn comes; time
// and memory are a few times the number of nodes that are walked.
class Merge {
  constructor(tree, way) {
    this.tree = tree;
    this.way = way;
    this.frames = new Numbers(Uint32Array);
    this.parents = new Numbers(Uint32Array);
    this.selfs = new Numbers(Float64Array);
    this.others = new Numbers(Float64Array);
    // What waits: a node of the source, and samples that came through it.
    this.node = new Numbers(Uint32Array);
    this.weight = new Numbers(Float64Array);
    this.other = new Numbers(Float64Array);
    // Groups: where each begins there, its parent and its frame; the next one
    // last.
    this.waiting = [];
    const frames = tree.frame.reduce((most, f) => Math.max(most, f), 0) + 1;
    this.stamp = new Uint32Array(frames);
    this.slot = new Uint32Array(frames);
    this.turn = 0;
  }

  // From these nodes, whose merged frame is the root of the result.
  from(nodes, rootFrame) {
    for (const node of nodes) {
      this.wait(node, this.tree.total[node], this.tree.other?.[node] ?? 0);
    }
    this.waiting.push(0, 0, Math.max(rootFrame, 0));
    return this.run(rootFrame);
  }

  // From all leaves, under one root: the whole tree upside down.
  invert() {
    this.add(0, 0, 0, 0);
    const {tree} = this;
    const found = this.makeFound();
    for (let i = 1; i < tree.parent.length; ++i) {
      const other = tree.otherSelf?.[i] ?? 0;
      if (tree.self[i] > 0 || other > 0) {
        this.find(found, i, tree.self[i], other);
      }
    }
    this.queue(found, 0);
  }

  // The merged tree; null where it is not done by that time, of
  // performance.now(), and goes on with the next call.
  run(rootFrame, until = Infinity) {
    const {waiting} = this;
    for (let turn = 1; waiting.length > 0; ++turn) {
      if (turn % GROUPS_AT_ONCE === 0 && performance.now() > until) return null;
      const frame = waiting.pop();
      const parent = waiting.pop();
      this.take(waiting.pop(), parent, frame);
    }
    const tree =
        new Tree(this.parents.done(), this.frames.done(), rootFrame);
    tree.weigh(this.selfs.done(), this.tree.other ? this.others.done() : null);
    if (this.way === 'callers') tree.parentIs = 'callee';
    return tree;
  }

  wait(node, weight, other) {
    this.node.push(node);
    this.weight.push(weight);
    this.other.push(other);
  }

  // One group, at the end of the list, becomes a node, and gives way to the
  // groups that follow it.
  take(begin, parent, frame) {
    if (this.node.size === begin + 1) {
      this.takeOne(begin, parent, frame);
      return;
    }
    const {tree} = this;
    const at = this.frames.size;
    this.add(parent, frame, 0, 0);
    let self = 0, others = 0;
    const found = this.makeFound();
    const nodes = this.node.all, weights = this.weight.all;
    const otherWeights = this.other.all;
    for (let i = begin, end = this.node.size; i < end; ++i) {
      const node = nodes[i];
      if (this.way === 'callers') {
        const next = tree.parent[node];
        if (next === 0) {
          self += weights[i];
          others += otherWeights[i];
        } else {
          this.find(found, next, weights[i], otherWeights[i]);
        }
        continue;
      }
      self += tree.self[node];
      others += tree.otherSelf?.[node] ?? 0;
      for (let c = node + 1; c < tree.end[node]; c = tree.end[c]) {
        const other = tree.other?.[c] ?? 0;
        if (tree.total[c] > 0 || other > 0) {
          this.find(found, c, tree.total[c], other);
        }
      }
    }
    this.selfs.all[at] = self;
    this.others.all[at] = others;
    this.node.size = this.weight.size = this.other.size = begin;
    this.queue(found, at);
  }

  // A group of one node: what follows it is as it is in the source.
  takeOne(begin, parent, frame) {
    const {tree} = this;
    const node = this.node.all[begin];
    const weight = this.weight.all[begin], other = this.other.all[begin];
    this.node.size = this.weight.size = this.other.size = begin;
    const at = this.frames.size;
    this.add(parent, frame, 0, 0);
    if (this.way === 'callers') {
      let last = at;
      for (let n = tree.parent[node]; n !== 0; n = tree.parent[n]) {
        this.add(last, tree.frame[n], 0, 0);
        last = this.frames.size - 1;
      }
      this.selfs.all[last] = weight;
      this.others.all[last] = other;
      return;
    }
    this.selfs.all[at] = tree.self[node];
    this.others.all[at] = tree.otherSelf?.[node] ?? 0;
    for (let n = node + 1; n < tree.end[node]; ++n) {
      this.add(at + tree.parent[n] - node, tree.frame[n], tree.self[n],
               tree.otherSelf?.[n] ?? 0);
    }
  }

  add(parent, frame, self, other) {
    this.parents.push(parent);
    this.frames.push(frame);
    this.selfs.push(self);
    this.others.push(other);
  }

  makeFound() {
    ++this.turn;
    return {node: [], weight: [], other: [], slot: [], counts: [], frames: []};
  }

  find(found, node, weight, other) {
    const frame = this.tree.frame[node];
    if (this.stamp[frame] !== this.turn) {
      this.stamp[frame] = this.turn;
      this.slot[frame] = found.counts.length;
      found.counts.push(0);
      found.frames.push(frame);
    }
    const slot = this.slot[frame];
    ++found.counts[slot];
    found.slot.push(slot);
    found.node.push(node);
    found.weight.push(weight);
    found.other.push(other);
  }

  // The groups of what was found, one behind the other on the list.
  queue(found, parent) {
    const begin = this.node.size;
    const size = begin + found.node.length;
    for (const list of [this.node, this.weight, this.other]) list.reserve(size);
    const next = new Uint32Array(found.frames.length);
    let at = begin;
    // The last one has its turn first: names in order.
    const {frames} = found;
    const order = new Float64Array(frames.length);
    for (let i = 0; i < order.length; ++i) {
      order[i] = frames[i] * MOST_SLOTS + i;
    }
    order.sort();
    for (let i = order.length - 1; i >= 0; --i) {
      const slot = order[i] % MOST_SLOTS;
      this.waiting.push(at, parent, frames[slot]);
      next[slot] = at;
      at += found.counts[slot];
    }
    for (let i = 0; i < found.node.length; ++i) {
      const place = next[found.slot[i]]++;
      this.node.all[place] = found.node[i];
      this.weight.all[place] = found.weight[i];
      this.other.all[place] = found.other[i];
    }
    this.node.size = this.weight.size = this.other.size = size;
  }
}

// What called a function, and what it called, each as a tree whose root is the
// function.
function callersOf(tree, data, wanted) {
  return new Merge(tree, 'callers').from(
      outermostNodes(tree, data.functionOf, wanted), data.functions[wanted]);
}
function calleesOf(tree, data, wanted) {
  return new Merge(tree, 'callees').from(
      outermostNodes(tree, data.functionOf, wanted), data.functions[wanted]);
}
// The functions in which samples end, each with its callers. It can be made a
// part at a time, before somebody waits for it.
class BottomUp {
  constructor(tree) {
    this.source = tree;
    this.merge = null;
    this.tree = null;
  }

  // Works for about that time, in milliseconds. True when the tree is there.
  work(ms) {
    const until = performance.now() + ms;
    if (this.merge === null) {
      this.merge = new Merge(this.source, 'callers');
      this.merge.invert();
    } else {
      this.tree ??= this.merge.run(-1, until);
    }
    return this.tree !== null;
  }

  get() {
    while (!this.work(Infinity)) {}
    return this.tree;
  }
}
