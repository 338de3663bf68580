// SPDX-License-Identifier: Apache-2.0
'use strict';

// Frames' kinds that the page asks for by name, in the order of FlameKind.
const KIND_COMMAND = 0;
const KIND_KERNEL = 2;
const KIND_BPF = 4;

// Where threads of a machine or a runtime have nothing to do: idle CPUs, system
// calls that wait, and runtimes that look for work.
const IDLE_NAMES = new RegExp('^(?:' + [
  'do_idle', 'cpu_startup_entry', 'cpuidle_enter\\w*', 'default_idle\\w*',
  '(?:acpi|intel|mwait|poll)_idle\\w*',
  '(?:__)?(?:(?:x64|arm64|se|do)_)?(?:sys_)?(?:' + [
    'epoll_p?wait2?', 'p?poll', 'p?select6?', '(?:clock_)?nanosleep',
    'futex_wait\\w*', 'rt_sigtimedwait', 'accept4?', 'wait4', 'waitid',
    'pthread_cond_(?:timed|clock)?wait', 'sem_(?:timed|clock)?wait',
    'futex_abstimed_wait\\w*',
  ].join('|') + ')(?:@.*)?',
  'runtime\\.(?:find[rR]unnable|schedule|stopm|mPark|notet?sleep\\w*|' +
      'futexsleep|usleep|osyield)',
  'Unsafe_Park', 'Parker::park.*', '(?:os::)?Platform(?:Event|Monitor)::.*',
  '(?:Object)?Monitor::wait.*', '.*LockSupport[.:]+park\\w*.*',
  '.*Unsafe[.:]+park(?:\\(.*)?', '.*java.lang.Object[.:]+wait0?(?:\\(.*)?',
].join('|') + ')$');

function isKernel(frame) {
  return frame.kind === KIND_KERNEL || frame.kind === KIND_BPF ||
      frame.module === '[kernel]' || frame.name === '[Missed Kernel Stack]';
}

// The profile as it was written, and a tree for each way to group its samples.
class FlameData {
  constructor(json) {
    this.json = json;
    this.isDifference = Boolean(json.before);
    this.frames = json.frames.map(
        ([name, module, kind]) => ({name, module: json.modules[module], kind}));
    this.parkedFrame = json.parked ?? -1;  // what parked threads are below
    this.numberFunctions();
    this.readNodes(json.nodes);
    this.leaves = json.kinds ? this.readKinds(json.kinds) :
                               this.readLeaves(json.leaves);
    this.before = this.isDifference ? this.readLeaves(json.before) : null;
    this.choose('');
    this.groups = new Map();  // grouping -> {tree, origin, places}
  }

  // Functions: frames that print the same, whether inlined or not. Frames are
  // sorted by name and file. -1: a command.
  numberFunctions() {
    this.functionOf = new Int32Array(this.frames.length);
    this.functions = [];  // a frame of each
    let last = null;
    this.frames.forEach((frame, i) => {
      if (frame.kind === KIND_COMMAND) {
        this.functionOf[i] = -1;
        return;
      }
      if (last?.name !== frame.name || last.module !== frame.module) {
        this.functions.push(i);
      }
      this.functionOf[i] = this.functions.length - 1;
      last = frame;
    });
  }

  readNodes(nodes) {
    const count = nodes.length / 2;
    this.parent = new Uint32Array(count);
    this.frame = new Uint32Array(count);
    this.command = new Uint32Array(count);  // the node right below the root
    for (let i = 1; i < count; ++i) {
      this.parent[i] = i - nodes[2 * i];
      this.frame[i] = nodes[2 * i + 1];
      this.command[i] = this.parent[i] === 0 ? i : this.command[this.parent[i]];
    }
  }

  // Each leaf says how far its node is behind the one before.
  readLeaves(leaves) {
    const count = leaves.length / 3;
    const node = new Uint32Array(count);
    const owner = new Uint32Array(count);
    const samples = new Float64Array(count);
    for (let i = 0, at = 0; i < count; ++i) {
      node[i] = at += leaves[3 * i];
      owner[i] = leaves[3 * i + 1];
      samples[i] = leaves[3 * i + 2];
    }
    return {node, owner, samples};
  }

  // The leaves of all kinds of samples, one kind behind the other, with where
  // each begins. Nodes and their numbers are the same whichever is shown.
  readKinds(kinds) {
    const lists = kinds.map(({leaves}) => this.readLeaves(leaves));
    const ends = [0];
    for (const {node} of lists) ends.push(ends.at(-1) + node.length);
    const all = {node: new Uint32Array(ends.at(-1)),
                 owner: new Uint32Array(ends.at(-1)),
                 samples: new Float64Array(ends.at(-1)), ends};
    lists.forEach(({node, owner, samples}, i) => {
      all.node.set(node, ends[i]);
      all.owner.set(owner, ends[i]);
      all.samples.set(samples.map((n) => n * kinds[i].scale), ends[i]);
    });
    return all;
  }

  // The names of what can be shown, which opens first: the sum of all kinds of
  // samples is called "all". None where there is one kind.
  kinds() {
    const {sum, kinds} = this.json;
    if (!kinds) return [];
    return [...(sum ? ['all'] : []), ...kinds.map(({name}) => name)];
  }

  // Shows one of kinds(), or what opens; trees are to be weighed anew then.
  choose(kind) {
    const {json} = this;
    const opens = kind === '' || (kind === 'all' && json.sum);
    const at = !json.kinds || (opens && json.sum) ? -1 :
        Math.max(0, json.kinds.findIndex(({name}) => name === kind));
    const {title, unit, about} = at < 0 ? json.sum ?? json : json.kinds[at];
    const own = new Map(about);
    this.title = title;
    this.unit = unit ?? 'samples';  // of all numbers
    this.about = json.about.map(
        ([key, value]) => [key, json.kinds ? own.get(key) ?? value : value]);
    // Where the leaves are that count.
    this.from = at < 0 ? 0 : this.leaves.ends[at];
    this.to = at < 0 ? this.leaves.node.length : this.leaves.ends[at + 1];
  }

  groupings() {
    if (this.isDifference) return ['after', 'before'];
    const {threads, groups} = this.json;
    const found = ['command', 'process'];
    if (threads) found.push('thread');
    if (groups?.some(([unit]) => unit)) found.push('unit');
    if (groups?.some(([, container]) => container)) found.push('container');
    return found;
  }

  // Names of the commands, the heaviest first, with their samples of the kind
  // that is shown, which may be none.
  commands() {
    const samples = new Map();
    const add = ({node, samples: counts}, {from, to}) => node.forEach(
        (leaf, i) => {
          const {name} = this.frames[this.frame[this.command[leaf]]];
          const count = i >= from && i < to ? counts[i] : 0;
          samples.set(name, (samples.get(name) ?? 0) + count);
        });
    add(this.leaves, this);
    if (this.before) add(this.before, {from: 0, to: Infinity});
    return [...samples].sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1));
  }

  // The tree of a grouping with the samples of the chosen kind that the filter
  // leaves: {kernel, idle: whether hidden, only: the name of a command or '',
  // parked: whether it is shown where parked threads wait}.
  // One grouping has one tree; the next call weighs it anew.
  tree(grouping, filter) {
    const group = this.group(grouping);
    const after = this.weights(group, this.leaves, filter, this);
    const before = this.before && this.weights(
        group, this.before, filter, {from: 0, to: this.before.node.length});
    const [widths, others] =
        grouping === 'before' ? [before, after] : [after, before];
    group.tree.weigh(widths, others);
    return group.tree;
  }

  // All samples of a grouping, whatever filters hide.
  allSamples(grouping) {
    const samples = grouping === 'before' ? this.before.samples :
        this.leaves.samples.subarray(this.from, this.to);
    return samples.reduce((sum, count) => sum + count, 0);
  }

  // Where in the source most samples of a node are; '' if that is not known.
  place(tree, node) {
    const {places, nodePlaces} = this.json;
    if (!places) return '';
    const group = [...this.groups.values()].find((g) => g.tree === tree);
    if (!group) return '';
    return places[nodePlaces[group.origin ? group.origin[node] : node]] ?? '';
  }

  weights({tree, places}, {node, samples}, filter, {from, to}) {
    const self = new Float64Array(tree.parent.length);
    const idle = filter.idle ? this.idleNodes() : null;
    const outer = filter.kernel ? this.userNodes(tree) : null;
    const folded = filter.parked ? null : this.parkedNodes(tree);
    for (let i = from; i < to; ++i) {
      if (idle?.[node[i]]) continue;
      if (filter.only && filter.only !==
          this.frames[this.frame[this.command[node[i]]]].name) {
        continue;
      }
      let place = places ? places[i] : node[i];
      if (folded?.[place]) {
        place = folded[place];
      } else if (outer) {
        place = outer[place];
      }
      self[place] += samples[i];
    }
    return self;
  }

  // By node: the one that all of parked threads is folded into, or 0. Null: no
  // thread is parked.
  parkedNodes(tree) {
    if (this.parkedFrame < 0) return null;
    if (tree.parkedNodes) return tree.parkedNodes;
    const folded = new Uint32Array(tree.parent.length);
    for (let i = 1; i < folded.length; ++i) {
      folded[i] = folded[tree.parent[i]] ||
          (tree.frame[i] === this.parkedFrame ? i : 0);
    }
    return tree.parkedNodes = folded;
  }

  // Whether a node of a grouping's tree, be it there or not, is of parked
  // threads.
  isParked(grouping, node) {
    const folded = this.parkedNodes(this.group(grouping).tree);
    return Boolean(folded?.[node]);
  }

  // By node: whether it or a caller waits.
  idleNodes() {
    if (this.idle) return this.idle;
    const isIdle = this.frames.map(({name, kind}, frame) =>
        frame === this.parkedFrame ||
        (kind !== KIND_COMMAND && IDLE_NAMES.test(name)));
    this.idle = new Uint8Array(this.parent.length);
    for (let i = 1; i < this.idle.length; ++i) {
      this.idle[i] = this.idle[this.parent[i]] || isIdle[this.frame[i]];
    }
    return this.idle;
  }

  // By node: it, or what called the kernel.
  userNodes(tree) {
    if (tree.userNodes) return tree.userNodes;
    const outer = new Uint32Array(tree.parent.length);
    for (let i = 1; i < outer.length; ++i) {
      const parent = tree.parent[i];
      const isHidden = outer[parent] !== parent ||
          (tree.frame[i] !== this.parkedFrame &&
           isKernel(this.frames[tree.frame[i]]));
      outer[i] = isHidden ? outer[parent] : i;
    }
    return tree.userNodes = outer;
  }

  group(grouping) {
    if (!this.groups.has(grouping)) {
      this.groups.set(grouping, this.isDifference || grouping === 'command' ?
          {tree: new Tree(this.parent, this.frame)} :
          this.byOwner(OWNERS[grouping]));
    }
    return this.groups.get(grouping);
  }

  // A copy of the tree for each owner of samples, with only the nodes that it
  // has samples in.
  byOwner({label, own}) {
    const byKey = new Map();  // owner and command, as one number
    const byName = new Map();  // label -> its leaves, in the order of nodes
    const {node, owner} = this.leaves;
    for (let i = 0; i < node.length; ++i) {
      const command = this.command[node[i]];
      const key = owner[i] * this.parent.length + command;
      let found = byKey.get(key);
      if (!found) {
        const name = label(this.owner(owner[i]),
                           this.frames[this.frame[command]].name);
        const full = own ? `${command} ${name}` : name;
        found = byName.get(full) ?? {name, leaves: []};
        byName.set(full, found);
        byKey.set(key, found);
      }
      found.leaves.push(i);
    }
    // One kind's leaves are behind another one's.
    for (const {leaves} of byName.values()) {
      if (this.leaves.ends) leaves.sort((a, b) => node[a] - node[b]);
    }
    return this.join([...byName.values()], own);
  }

  owner(index) {
    const [pid, tid, group] = this.json.owners.slice(3 * index, 3 * index + 3);
    const [unit, container] = this.json.groups?.[group] ?? ['', ''];
    return {pid, tid, unit, container};
  }

  // `own`: an owner stands in place of its command, else above its commands.
  join(owners, own) {
    const parent = new Numbers(Uint32Array), frame = new Numbers(Uint32Array);
    const origin = new Numbers(Uint32Array);
    const add = (above, what, from) => {
      parent.push(above);
      frame.push(what);
      origin.push(from);
    };
    add(0, 0, 0);
    const places = new Uint32Array(this.leaves.node.length);
    const place = new Uint32Array(this.parent.length);  // in the new tree
    const seen = new Uint32Array(this.parent.length);  // by which owner, from 1
    const path = [];
    owners.forEach(({name, leaves}, index) => {
      const label = this.frames.length;
      this.frames.push({name, module: '', kind: KIND_COMMAND});
      place[0] = own ? 0 : parent.size;
      if (!own) add(0, label, 0);
      for (const leaf of leaves) {
        let node = this.leaves.node[leaf];
        for (; node !== 0 && seen[node] !== index + 1;
             node = this.parent[node]) {
          seen[node] = index + 1;
          path.push(node);
        }
        while (path.length > 0) {
          const next = path.pop();
          const isCommand = this.parent[next] === 0;
          place[next] = parent.size;
          add(place[this.parent[next]],
              own && isCommand ? label : this.frame[next], next);
        }
        places[leaf] = place[this.leaves.node[leaf]];
      }
    });
    return {tree: new Tree(parent.done(), frame.done()),
            origin: origin.done(), places};
  }
}

// How owners of samples are told apart. A pid of 0 is not known, or an idle
// CPU's.
const OWNERS = {
  process: {
    label: ({pid}, command) => pid ? `${command}-${pid}` : command,
    own: true,
  },
  thread: {
    label: ({pid, tid}, command) => pid ? `${command}-${pid}/${tid}` : command,
    own: true,
  },
  unit: {label: ({unit}) => unit || '[no unit]', own: false},
  container: {
    // As docker and podman show an id.
    label: ({container}) => !container ? '[no container]' :
        /^[0-9a-f]{64}$/.test(container) ? container.slice(0, 12) : container,
    own: false,
  },
};
