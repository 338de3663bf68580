'use strict';

// A tree of frames in arrays. Node 0 is the root; a node's subtree follows it,
// so that sums and places need one pass and no recursion.
class Tree {
  // parent, frame: of each node. self: samples that end in it. other: the
  // same of the profile that this one is compared with, or nothing.
  constructor(parent, frame, self, other) {
    const count = parent.length;
    this.parent = parent;
    this.frame = frame;
    this.total = Float64Array.from(self);
    this.other = other && Float64Array.from(other);
    this.depth = new Uint16Array(count);
    this.end = new Uint32Array(count);  // one past the last of the subtree
    this.start = new Float64Array(count);  // in samples from the left
    this.maxDepth = 0;
    for (let i = 0; i < count; ++i) this.end[i] = i + 1;
    for (let i = count - 1; i > 0; --i) {
      const p = parent[i];
      this.total[p] += this.total[i];
      if (other) this.other[p] += this.other[i];
      if (this.end[p] < this.end[i]) this.end[p] = this.end[i];
    }
    const next = new Float64Array(count);  // where the next child begins
    for (let i = 1; i < count; ++i) {
      const p = parent[i];
      this.depth[i] = this.depth[p] + 1;
      if (this.depth[i] > this.maxDepth) this.maxDepth = this.depth[i];
      this.start[i] = next[p];
      next[p] += this.total[i];
      next[i] = this.start[i];
    }
  }

  // Nodes from below the root down to `node`.
  pathTo(node) {
    const path = [];
    for (; node !== 0; node = this.parent[node]) path.push(node);
    return path.reverse();
  }

  // The next node at the same depth under the same parent, or -1.
  siblingAfter(node) {
    const next = this.end[node];
    return node !== 0 && next < this.end[this.parent[node]] ? next : -1;
  }
  siblingBefore(node) {
    if (node === 0) return -1;
    let before = -1;
    for (let i = this.parent[node] + 1; i < node; i = this.end[i]) before = i;
    return before;
  }
  heaviestChild(node) {
    let best = -1;
    for (let i = node + 1; i < this.end[node]; i = this.end[i]) {
      if (best < 0 || this.total[i] > this.total[best]) best = i;
    }
    return best;
  }

  // Samples in frames that match: each counted once, however often its stack
  // has such a frame. `hit`: by frame.
  matched(hit) {
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

// What the page shows: the data as it was written, and a tree for each way to
// group the samples.
class FlameData {
  constructor(json) {
    this.json = json;
    this.frames = json.frames.map(
        ([name, module, kind]) => ({name, module: json.modules[module], kind}));
    const count = json.nodes.length / 2;
    this.parent = new Uint32Array(count);
    this.frame = new Uint32Array(count);
    for (let i = 1; i < count; ++i) {
      this.parent[i] = i - json.nodes[2 * i];
      this.frame[i] = json.nodes[2 * i + 1];
    }
    this.trees = new Map();
  }

  // Where in the source most samples of a node are; '' if that is not known.
  place(tree, node) {
    const {places, nodePlaces} = this.json;
    if (!places) return '';
    return places[nodePlaces[tree.origin ? tree.origin[node] : node]];
  }

  // Of a difference: whose samples the widths are of.
  groupings() {
    if (this.json.before) return ['after', 'before'];
    return this.json.threads ? ['command', 'process', 'thread'] :
                               ['command', 'process'];
  }

  tree(grouping) {
    if (!this.trees.has(grouping)) {
      this.trees.set(grouping, this.makeTree(grouping));
    }
    return this.trees.get(grouping);
  }

  makeTree(grouping) {
    if (this.json.before) return this.compared(grouping);
    return grouping === 'command' ? this.byCommand() : this.byOwner(grouping);
  }

  compared(grouping) {
    const after = new Float64Array(this.parent.length);
    const before = new Float64Array(this.parent.length);
    const {leaves, before: pairs} = this.json;
    for (let i = 0; i < leaves.length; i += 4) after[leaves[i]] += leaves[i + 3];
    for (let i = 0; i < pairs.length; i += 2) before[pairs[i]] += pairs[i + 1];
    return grouping === 'after' ?
        new Tree(this.parent, this.frame, after, before) :
        new Tree(this.parent, this.frame, before, after);
  }

  // What a node used in the two profiles, in CPUs or as a share of the whole.
  usage(grouping, node) {
    const {total, other} = this.tree(grouping);
    const {measure} = this.json;
    const [after, before] = grouping === 'after' ? [total, other] :
                                                   [other, total];
    return {
      after: after[node] * measure.after,
      before: before[node] * measure.before,
    };
  }

  // The functions whose own use, without what they call, differs most between
  // the two profiles.
  largestChanges(count) {
    const {leaves, before: pairs, measure} = this.json;
    const changes = new Map();  // by name
    const add = (node, when, use) => {
      const {name} = this.frames[this.frame[node]];
      const change = changes.get(name) ?? {name, before: 0, after: 0};
      change[when] += use;
      changes.set(name, change);
    };
    for (let i = 0; i < leaves.length; i += 4) {
      add(leaves[i], 'after', leaves[i + 3] * measure.after);
    }
    for (let i = 0; i < pairs.length; i += 2) {
      add(pairs[i], 'before', pairs[i + 1] * measure.before);
    }
    const size = ({before, after}) => Math.abs(after - before);
    return [...changes.values()].filter((change) => size(change) > 0)
        .sort((a, b) => size(b) - size(a)).slice(0, count);
  }

  byCommand() {
    const self = new Float64Array(this.parent.length);
    const leaves = this.json.leaves;
    for (let i = 0; i < leaves.length; i += 4) self[leaves[i]] += leaves[i + 3];
    return new Tree(this.parent, this.frame, self);
  }

  // A copy of the command's subtree for each process (or thread) of it, with
  // only the nodes that it has samples in.
  byOwner(grouping) {
    const command = new Uint32Array(this.parent.length);  // above each node
    for (let i = 1; i < command.length; ++i) {
      command[i] = this.parent[i] === 0 ? i : command[this.parent[i]];
    }
    const byCommand = new Map();  // command -> pid and tid in one -> owner
    const {leaves} = this.json;
    for (let i = 0; i < leaves.length; i += 4) {
      const node = leaves[i];
      const pid = leaves[i + 1];
      const tid = grouping === 'thread' ? leaves[i + 2] : 0;
      let owners = byCommand.get(command[node]);
      if (!owners) byCommand.set(command[node], owners = new Map());
      const key = pid * 2 ** 22 + tid;
      let owner = owners.get(key);
      if (!owner) {
        // 0: not known, or an idle CPU.
        const id = pid === 0 ? '' :
            grouping === 'thread' ? `-${pid}/${tid}` : `-${pid}`;
        owners.set(key, owner = {command: command[node], id, leaves: []});
      }
      owner.leaves.push(node, leaves[i + 3]);
    }
    const sorted = [...byCommand.values()].flatMap(
        (owners) => [...owners.values()]);
    sorted.sort((a, b) =>
        a.command - b.command || parseInt(b.id) - parseInt(a.id) ||
        a.id.localeCompare(b.id));
    return this.join(sorted);
  }

  join(owners) {
    const parent = [0], frame = [0], self = [0], origin = [0];
    const count = this.parent.length;
    const place = new Uint32Array(count);  // in the new tree
    const ending = new Float64Array(count);  // samples of this owner
    const seen = new Uint32Array(count);  // the last owner's number from 1
    owners.forEach((owner, index) => {
      const nodes = [];
      for (let i = 0; i < owner.leaves.length; i += 2) {
        const leaf = owner.leaves[i];
        for (let n = leaf; n !== 0 && seen[n] !== index + 1;
             n = this.parent[n]) {
          seen[n] = index + 1;
          ending[n] = 0;
          nodes.push(n);
        }
        ending[leaf] += owner.leaves[i + 1];
      }
      const name = this.frames[this.frame[owner.command]].name;
      this.frames.push({name: name + owner.id, module: '', kind: 0});
      for (const node of Uint32Array.from(nodes).sort()) {
        place[node] = parent.length;
        const isCommand = node === owner.command;
        parent.push(isCommand ? 0 : place[this.parent[node]]);
        frame.push(isCommand ? this.frames.length - 1 : this.frame[node]);
        self.push(ending[node]);
        origin.push(node);
      }
    });
    const tree =
        new Tree(Uint32Array.from(parent), Uint32Array.from(frame), self);
    tree.origin = Uint32Array.from(origin);  // the nodes that these copy
    return tree;
  }
}
