// SPDX-License-Identifier: Apache-2.0
// parts.mjs DIRECTORY: the parts of the flame graph page that need no document
// (DIRECTORY is daemon/web), each for itself.

import assert from 'node:assert/strict';
import {readFileSync} from 'node:fs';
import vm from 'node:vm';

const FILES = ['tree', 'data', 'functions', 'names', 'layout', 'colours',
               'state', 'export', 'details', 'machine_rows', 'times', 'range_state',
               'lanes', 'row_names', 'slices'];
const EXPORTS = ['Tree', 'FlameData', 'functionTotals', 'callersOf', 'calleesOf',
                 'BottomUp', 'shortName', 'fitName', 'fitFrame', 'cutEnd',
                 'Layout', 'Change', 'parseState', 'formatState', 'foldedName',
                 'foldedText', 'svgBox', 'svgText', 'OPENING_STATE',
                 'Details', 'stepOf', 'snapped', 'rangeText', 'lengthText',
                 'ticksOf', 'averageOf', 'averageUnit', 'OPENING', 'windowOf',
                 'parseAddress', 'formatAddress', 'queryOf', 'kindsOf', 'lanesOf',
                 'rowPixels', 'laneText', 'laneColour', 'otherKindsIn', 'rowLabel',
                 'fineTimeOf', 'rangeOfSlices', 'columnsOf'];
// The same of a fleet's page.
const FLEET_FILES = ['fleet_rows', 'times', 'range_state'];
const FLEET_EXPORTS = ['OPENING', 'parseAddress', 'formatAddress', 'queryOf',
                       'isCompared', 'secondSide', 'bothSides', 'differenceOf',
                       'namesText', 'fieldOfTime', 'timeOfField', 'MOST_NAMES'];
function load(files, exported) {
  const sources = files.map(
      (name) => readFileSync(`${process.argv[2]}/${name}.js`, 'utf8'));
  return vm.runInNewContext(
      sources.join('\n') + `\n({${exported.join(',')}})`,
      {URLSearchParams, performance});
}
const parts = load(FILES, EXPORTS);
const fleet = load(FLEET_FILES, FLEET_EXPORTS);

let count = 0;
// property: a sentence.
function test(property, body) {
  try {
    body();
    ++count;
  } catch (error) {
    error.message = `${property}\n${error.message}`;
    throw error;
  }
}
// What comes from the other context has other prototypes.
const plain = (value) => JSON.parse(JSON.stringify(value));
const equal = (value, wanted) => assert.deepEqual(plain(value), wanted);

// The page's data for stacks: [[names], samples, [pid, tid, group]]. A name's
// kind stands in front of it, as in "k:vfs_read", and its file behind '|'.
const KIND_LETTERS = {c: 0, u: 1, k: 2, j: 3, b: 4, x: 5, i: 6};
function makeJson(stacks, more = {}) {
  const frameOf = (text) => {
    const [, kind, name, file = ''] = /^(.):([^|]*)(?:\|(.*))?$/.exec(text);
    return [name, file || (kind === 'k' ? '[kernel]' : ''), KIND_LETTERS[kind]];
  };
  const order = (a, b) => (a < b ? -1 : a > b ? 1 : 0);
  const texts = [...new Set(stacks.flatMap(([names]) => names))].sort(
      (a, b) => order(frameOf(a).join('\0'), frameOf(b).join('\0')));
  const modules = [...new Set(texts.map((text) => frameOf(text)[1]))].sort();
  const root = {children: new Map(), leaves: []};
  const owners = [];
  for (const [names, samples, owner = [1, 0, 0]] of stacks) {
    let node = root;
    for (const name of names) {
      if (!node.children.has(name)) {
        node.children.set(name, {children: new Map(), leaves: []});
      }
      node = node.children.get(name);
    }
    let number = owners.findIndex((known) => `${known}` === `${owner}`);
    if (number < 0) number = owners.push(owner) - 1;
    node.leaves.push([number, samples]);
  }
  const nodes = [], leaves = [];
  let last = 0;
  const visit = (node, parent, frame) => {
    const at = nodes.length / 2;
    nodes.push(at === 0 ? 0 : at - parent, at === 0 ? 0 : frame);
    for (const [owner, samples] of node.leaves) {
      leaves.push(at - last, owner, samples);
      last = at;
    }
    const sorted = [...node.children].sort(
        ([a], [b]) => texts.indexOf(a) - texts.indexOf(b));
    for (const [name, child] of sorted) visit(child, at, texts.indexOf(name));
  };
  visit(root, 0, 0);
  return {
    title: 'test', loss: '', about: [], threads: true, modules, nodes, leaves,
    frames: texts.map((text) => {
      const [name, file, kind] = frameOf(text);
      return [name, modules.indexOf(file), kind];
    }),
    owners: owners.flat(), ...more,
  };
}

const NOTHING_HIDDEN = {kernel: false, idle: false, only: ''};
// The whole tree as folded lines, with the names of frames.
function lines(tree, data) {
  const text = parts.foldedText(tree, 0, data.frames);
  return text.trimEnd().split('\n').filter((line) => line !== '').sort();
}

const STACKS = [
  [['c:web', 'u:main', 'u:work', 'u:sort'], 40, [7, 7, 1]],
  [['c:web', 'u:main', 'u:work', 'u:sort'], 20, [7, 8, 1]],
  [['c:web', 'u:main', 'u:work', 'k:sys_write', 'k:vfs_write'], 30, [7, 7, 1]],
  [['c:db', 'u:main', 'u:work', 'u:epoll_wait', 'k:do_epoll_wait'], 8, [9, 9, 2]],
  [['c:db', 'u:main', 'u:work', 'u:work', 'u:sort'], 2, [9, 9, 2]],
];
const GROUPS = [['', ''], ['web.service', ''], ['docker.scope', 'f'.repeat(64)]];
const sample = () => new parts.FlameData(makeJson(STACKS, {groups: GROUPS}));

test('Each stack is a path of the tree with its samples.', () => {
  const data = sample();
  equal(lines(data.tree('command', NOTHING_HIDDEN), data), [
    'db;main;work;epoll_wait;do_epoll_wait 8', 'db;main;work;work;sort 2',
    'web;main;work;sort 60', 'web;main;work;sys_write;vfs_write 30',
  ]);
});

test('Numbers are of the unit that the profile tells, else of samples.', () => {
  for (const [more, unit] of [[{}, 'samples'], [{unit: 'bytes'}, 'bytes']]) {
    const data = new parts.FlameData(makeJson(STACKS, more));
    const details = new parts.Details(data, null);
    const tree = data.tree('command', NOTHING_HIDDEN);
    details.all = tree.total[0];
    assert.match(details.numbers(tree, 0), new RegExp(`^100 ${unit}, 100`));
  }
});

test('Groups are those that the profile knows, and share out all samples.', () => {
  const data = sample();
  equal(data.groupings(),
        ['command', 'process', 'thread', 'unit', 'container']);
  const tops = (grouping) => {
    const tree = data.tree(grouping, NOTHING_HIDDEN);
    return Object.fromEntries(tree.children(0, 0, true).map(
        ({node}) => [data.frames[tree.frame[node]].name, tree.total[node]]));
  };
  equal(tops('process'), {'web-7': 90, 'db-9': 10});
  equal(tops('thread'), {'web-7/7': 70, 'web-7/8': 20, 'db-9/9': 10});
  equal(tops('unit'), {'web.service': 90, 'docker.scope': 10});
  equal(tops('container'), {'[no container]': 90, 'ffffffffffff': 10});
  equal(lines(data.tree('unit', NOTHING_HIDDEN), data)[0],
        'docker.scope;db;main;work;epoll_wait;do_epoll_wait 8');
  equal(new parts.FlameData({...makeJson(STACKS), threads: false}).groupings(),
        ['command', 'process']);
});

// Two kinds, in each of which there are stacks of both processes.
function ofTwoKinds(withSum) {
  const json = makeJson(STACKS, {groups: GROUPS, about: [['event', 'both'],
                                                         ['warning', 'one'],
                                                         ['warning', 'two']]});
  const of = (name, title, unit, scale, leaves) =>
      ({name, title, unit, about: [['event', `of ${name}`]], scale, leaves});
  const {leaves} = json;
  delete json.leaves;
  // One more of every leaf is blocked; nothing of the last one runs.
  const waits = leaves.map((number, i) => i % 3 === 2 ? 1 : number);
  json.kinds = [of('cpu', 'CPUs', 'nanoseconds', 10, leaves.slice(0, -3)),
                of('blocked', 'threads', 'nanoseconds', 1, waits)];
  if (withSum) {
    json.sum = {name: 'wall', title: 'all of it', unit: 'nanoseconds',
                about: [['event', 'of all']]};
  }
  return json;
}

test('Of several kinds of samples one is shown, or all together.', () => {
  const json = ofTwoKinds(true);
  const data = new parts.FlameData(json);
  equal(data.kinds(), ['all', 'cpu', 'blocked']);
  const last = makeJson(STACKS).leaves.at(-1);
  for (const [kind, title, sum] of
       [['', 'all of it', 10 * (100 - last) + 5], ['cpu', 'CPUs', 10 * (100 - last)],
        ['blocked', 'threads', 5], ['all', 'all of it', 10 * (100 - last) + 5]]) {
    data.choose(kind);
    equal(data.title, title);
    equal(data.about, [['event', `of ${kind || 'all'}`], ['warning', 'one'],
                       ['warning', 'two']]);
    for (const grouping of data.groupings()) {
      equal(data.tree(grouping, NOTHING_HIDDEN).total[0], sum);
      equal(data.allSamples(grouping), sum);
    }
    equal(data.commands().reduce((all, [, samples]) => all + samples, 0), sum);
    equal(data.commands().length, 2);
  }
  // Each owner's subtree has all that is its own, whatever kind it is of.
  data.choose('');
  equal(lines(data.tree('thread', NOTHING_HIDDEN), data).length, 5);
  const tree = data.tree('thread', NOTHING_HIDDEN);
  for (let i = 1; i < tree.parent.length; ++i) assert.ok(tree.parent[i] < i);
  assert.equal(new Set(tree.children(0, 0, false).map(
      ({node}) => data.frames[tree.frame[node]].name)).size, 3);
});

test('Kinds that cannot be added up open with the first one.', () => {
  const data = new parts.FlameData(ofTwoKinds(false));
  equal(data.kinds(), ['cpu', 'blocked']);
  equal(data.title, 'CPUs');
  data.choose('blocked');
  equal(data.tree('command', NOTHING_HIDDEN).total[0], 5);
  equal(sample().kinds(), []);
});

test('A hidden kernel leaves its samples with what called it.', () => {
  const data = sample();
  const tree = data.tree('thread', {...NOTHING_HIDDEN, kernel: true});
  equal(lines(tree, data), [
    'db-9/9;main;work;epoll_wait 8', 'db-9/9;main;work;work;sort 2',
    'web-7/7;main;work 30', 'web-7/7;main;work;sort 40',
    'web-7/8;main;work;sort 20',
  ]);
});

test('What waits is hidden with its samples; one command can be left.', () => {
  const data = sample();
  equal(data.tree('command', {...NOTHING_HIDDEN, idle: true}).total[0], 92);
  equal(data.tree('unit', {...NOTHING_HIDDEN, only: 'db'}).total[0], 10);
  equal(data.tree('process', {kernel: true, idle: true, only: 'db'}).total[0], 2);
  equal(data.allSamples('command'), 100);
  equal(data.tree('command', NOTHING_HIDDEN).total[0], 100);
});

const PARKED = [
  [['c:web', 'u:main', 'u:work'], 10, [1, 1, 0]],
  [['c:web', 'k:[parked]', 'u:main', 'u:pool', 'k:sys_futex'], 60, [1, 1, 0]],
  [['c:web', 'k:[parked]', 'u:main', 'u:timer', 'k:sys_futex'], 30, [1, 2, 0]],
  [['c:db', 'u:main', 'k:[blocked: read]'], 5, [2, 2, 0]],
];
function makeParked() {
  const json = makeJson(PARKED);
  json.parked = json.frames.findIndex(([name]) => name === '[parked]');
  return new parts.FlameData(json);
}

test('Parked threads are one frame until it is opened, whatever is grouped.', () => {
  const data = makeParked();
  const folded = data.tree('command', NOTHING_HIDDEN);
  equal(lines(folded, data), ['db;main;[blocked: read] 5', 'web;[parked] 90',
                              'web;main;work 10']);
  equal(lines(data.tree('thread', NOTHING_HIDDEN), data),
        ['db-2/2;main;[blocked: read] 5', 'web-1/1;[parked] 60',
         'web-1/1;main;work 10', 'web-1/2;[parked] 30']);
  const open = data.tree('command', {...NOTHING_HIDDEN, parked: true});
  equal(lines(open, data), [
    'db;main;[blocked: read] 5', 'web;[parked];main;pool;sys_futex 60',
    'web;[parked];main;timer;sys_futex 30', 'web;main;work 10',
  ]);
  equal(open.total[0], 105);
});

test('All below the frame of parked threads is told, and nothing else is.', () => {
  const data = makeParked();
  const {tree} = data.group('command');
  const inside = [...tree.parent.keys()].filter(
      (node) => data.isParked('command', node));
  equal(inside.map((node) => data.frames[tree.frame[node]].name),
        ['[parked]', 'main', 'pool', 'sys_futex', 'timer', 'sys_futex']);
  assert.ok(!data.isParked('command', 0));
  assert.ok(!data.isParked('command', 12345));
  assert.ok(!sample().isParked('command', 1));
});

test('A hidden kernel leaves parked threads; hidden waiting takes them.', () => {
  const data = makeParked();
  const kernel = {...NOTHING_HIDDEN, kernel: true};
  equal(lines(data.tree('command', kernel), data),
        ['db;main 5', 'web;[parked] 90', 'web;main;work 10']);
  equal(lines(data.tree('command', {...kernel, parked: true}), data),
        ['db;main 5', 'web;[parked];main;pool 60',
         'web;[parked];main;timer 30', 'web;main;work 10']);
  equal(data.tree('command', {...NOTHING_HIDDEN, idle: true}).total[0], 15);
});

test('Names of waiting and idle runtimes are known, others are not.', () => {
  const isIdle = (name) => new parts.FlameData(makeJson(
      [[['c:a', `u:${name}`], 1]])).idleNodes()[2] === 1;
  for (const name of ['do_idle', '__x64_sys_epoll_wait', 'epoll_wait@@GLIBC_2.3',
                      'runtime.findRunnable', 'futex_wait_queue', 'Unsafe_Park',
                      'cpuidle_enter_state',
                      'java.util.concurrent.locks.LockSupport.park(Object)']) {
    assert.ok(isIdle(name), name);
  }
  for (const name of ['main', 'Poll', 'park', 'my_epoll_wait', 'wait_for_it',
                      'runtime.mallocgc', 'selector', 'schedule']) {
    assert.ok(!isIdle(name), name);
  }
});

test('A recursive function counts a sample once, its inlined self included.', () => {
  const data = new parts.FlameData(makeJson([
    [['c:a', 'u:f', 'u:g', 'u:f'], 3], [['c:a', 'u:f'], 2],
    [['c:a', 'u:g', 'i:f'], 1],
  ]));
  const {self, total} =
      parts.functionTotals(data.tree('command', NOTHING_HIDDEN), data);
  const names = data.functions.map((frame) => data.frames[frame].name);
  equal(names, ['f', 'g']);
  equal([...self], [6, 0]);
  equal([...total], [6, 4]);
});

test('Callers and callees of a function have its samples, each once.', () => {
  const data = sample();
  const tree = data.tree('command', NOTHING_HIDDEN);
  const work = data.functions.findIndex(
      (frame) => data.frames[frame].name === 'work');
  const callers = parts.callersOf(tree, data, work);
  equal(lines(callers, data), ['work;main;db 10', 'work;main;web 90']);
  const callees = parts.calleesOf(tree, data, work);
  equal(lines(callees, data), [
    'work;epoll_wait;do_epoll_wait 8', 'work;sort 60',
    'work;sys_write;vfs_write 30', 'work;work;sort 2',
  ]);
  equal([callers.total[0], callees.total[0]], [100, 100]);
  equal([callers.parentIs, callees.parentIs], ['callee', 'caller']);
});

test('Bottom-up has each stack from its end on, equal ends in one.', () => {
  const data = sample();
  const tree = new parts.BottomUp(data.tree('command', NOTHING_HIDDEN)).get();
  equal(lines(tree, data), [
    'do_epoll_wait;epoll_wait;work;main;db 8', 'sort;work;main;web 60',
    'sort;work;work;main;db 2', 'vfs_write;sys_write;work;main;web 30',
  ]);
  const tops = tree.children(0, 0, true).map(({node}) => tree.total[node]);
  equal(tops, [62, 30, 8]);
});

test('Bottom-up is the same when it is made a part at a time.', () => {
  const data = new parts.FlameData(makeJson(Array.from(
      {length: 3000}, (_, i) => [['c:a', `u:f${i % 7}`, `u:g${i}`], i + 1])));
  const tree = data.tree('command', NOTHING_HIDDEN);
  const bottomUp = new parts.BottomUp(tree);
  let turns = 1;
  while (!bottomUp.work(-1)) ++turns;
  assert.ok(turns > 3, `${turns}`);
  const atOnce = new parts.BottomUp(tree).get();
  equal(lines(bottomUp.tree, data), lines(atOnce, data));
  assert.ok(bottomUp.get() === bottomUp.tree);
});

test('A merge keeps the samples of both profiles of a difference.', () => {
  const data = new parts.FlameData(makeJson(
      [[['c:a', 'u:f', 'u:g'], 5], [['c:a', 'u:h', 'u:g'], 1]],
      {before: [4, 0, 7], measure: {unit: 'CPUs', after: 1, before: 1}}));
  for (const grouping of ['after', 'before']) {
    const tree = data.tree(grouping, NOTHING_HIDDEN);
    const g = data.functions.findIndex(
        (frame) => data.frames[frame].name === 'g');
    const sums = [data.tree(grouping, NOTHING_HIDDEN), new parts.BottomUp(tree).get(),
                  parts.callersOf(tree, data, g), parts.calleesOf(tree, data, g)]
        .map(({total, other}) => [total[0], other[0]]);
    for (const sum of sums) {
      equal(sum, grouping === 'after' ? [6, sum[1]] : [sum[0], 6]);
    }
    equal(sums[1], sums[0]);
  }
});

test('A change below two errors of the counts is not sure.', () => {
  const measure = {unit: '', after: 1, before: 1};
  const isSure = (after, before) =>
      new parts.Change(after, before, measure).isSure;
  equal([isSure(100, 100), isSure(110, 100), isSure(131, 100), isSure(5, 0),
         isSure(4, 0), isSure(0, 5)], [false, false, true, true, false, true]);
});

test('Names lose arguments, template arguments and return types.', () => {
  const short = {
    'Work(int, char)': 'Work',
    'std::map<int, std::less<int> >::find(int const&) const':
        'std::map<…>::find',
    'void ns::f<int>(std::vector<int>)': 'ns::f<…>',
    'std::pair<A, B> ns::make<A, B>(A, B)': 'ns::make<…>',
    'operator new(unsigned long)': 'operator new',
    'bool operator< <int>(A<int> const&, B)': 'operator<<…>',
    'std::istream<char>& std::operator>><char, std::a<char> >(std::b<c>&, d&)':
        'std::operator>><…>',
    'A::operator bool() const': 'A::operator bool',
    'A::operator&&(B)': 'A::operator&&',
    'cooperator<int>(A)': 'cooperator<…>',
    'std::ostream& std::operator<<(std::ostream&, char)': 'std::operator<<',
    'A::operator()(int) const': 'A::operator()',
    'A::operator->() const': 'A::operator->',
    '(anonymous namespace)::Run(int)': '(anonymous namespace)::Run',
    'f(int)::{lambda(char)#1}::operator()(char) const':
        'f(…)::{lambda(char)#1}::operator()',
    'main.(*Server).Serve': 'main.(*Server).Serve',
    '<alloc::vec::Vec<T> as core::iter::Extend<T>>::extend':
        '<alloc::vec::Vec<T> as core::iter::Extend<T>>::extend',
    'core::ptr::drop_in_place<alloc::string::String>':
        'core::ptr::drop_in_place<…>',
    'f(int) [clone .cold]': 'f [clone .cold]',
    'void java.lang.String.getChars(int, int)': 'java.lang.String.getChars',
    'a < b': 'a < b', 'f(': 'f(', 'f<': 'f<', '': '', ')>': ')>',
    '[truncated: no-table]': '[truncated: no-table]',
    'LazyCompile:*go /srv/app.js:1:2': 'LazyCompile:*go /srv/app.js:1:2',
  };
  for (const [name, wanted] of Object.entries(short)) {
    assert.equal(parts.shortName(name), wanted, name);
  }
});

test('The telling end of a name stays as long as it can.', () => {
  const fit = (name, letters) => parts.fitName(name, letters);
  const name = 'com.example.shop.CartService.recalculateTotals(int)';
  equal([60, 48, 40, 32, 20, 10, 1].map((letters) => fit(name, letters)), [
    name, 'com.example.shop.CartService.recalculateTotals',
    '…shop.CartService.recalculateTotals', '…CartService.recalculateTotals',
    '…recalculateTotals', 'recalcula…', '…',
  ]);
  equal(fit('tcp_v4_rcv.isra.0', 12), 'tcp_v4_rcv.…');
  equal(fit('__libc_start_main@@GLIBC_2.34', 12), '__libc_star…');
  equal(fit('a::b<c>::d', 9), 'a::b<…>::d'.length <= 9 ? '' : '…b<…>::d');
  equal(parts.fitFrame({name: 'kworker/0:1', kind: 0}, 9), 'kworker/…');
});

test('No name that is shown has more than 200 characters, whatever it is.', () => {
  for (const name of ['x'.repeat(60000), 'a::'.repeat(20000),
                      'f<'.repeat(500) + '>'.repeat(500),
                      '('.repeat(60000), '\ud83d\ude00'.repeat(5000)]) {
    const shown = parts.fitName(name, 100000);
    assert.ok(shown.length <= 200, `${shown.length}`);
    assert.ok(!/[\ud800-\udbff]…/.test(shown), 'half a character');
  }
});

test('Boxes are beside each other, within their caller, heaviest first.', () => {
  const data = sample();
  const tree = data.tree('command', NOTHING_HIDDEN);
  const layout = new parts.Layout(
      tree, {zoomed: 0, pixels: 1000, byWeight: () => true});
  equal(layout.rows[1].nodes.map((node) => tree.total[node]), [90, 10]);
  equal(layout.rows[1].lefts, [0, 0.9]);
  for (const {nodes, lefts, widths} of layout.rows) {
    nodes.forEach((node, i) => {
      assert.ok(i === 0 || lefts[i] >= lefts[i - 1] + widths[i - 1] - 1e-9);
      if (node === 0) return;
      const caller = layout.find(tree.parent[node]);
      assert.ok(lefts[i] >= caller.left - 1e-9 &&
                lefts[i] + widths[i] <= caller.left + caller.width + 1e-9);
      equal(layout.at(layout.rowOf(node), lefts[i] + widths[i] / 2), node);
    });
  }
  equal([layout.at(1, 0.95) === layout.rows[1].nodes[1], layout.at(1, 1),
         layout.at(99, 0.5), layout.at(5, 0.3)], [true, -1, -1, -1]);
});

test('A zoom leaves nothing but the caller of what it is about.', () => {
  const data = sample();
  const tree = data.tree('command', NOTHING_HIDDEN);
  const sort = tree.frame.findIndex(
      (frame, node) => node > 0 && data.frames[frame].name === 'sort');
  const layout = new parts.Layout(
      tree, {zoomed: sort, pixels: 1000, byWeight: () => false});
  equal(layout.rows.map(({nodes}) => [...nodes]), [[tree.parent[sort]], [sort]]);
  assert.ok(layout.isLeft(tree.parent[sort]));
});

test('Frames that are too narrow to see are not laid out.', () => {
  const stacks = Array.from({length: 5000}, (_, i) => [['c:a', `u:f${i}`], 1]);
  const data = new parts.FlameData(makeJson(stacks));
  const layout = new parts.Layout(data.tree('command', NOTHING_HIDDEN),
                                  {zoomed: 0, pixels: 1000, byWeight: () => true});
  equal(layout.rows.length, 2);
});

test('The address holds what is shown, and nothing that is as it opens.', () => {
  equal(parts.formatState(parts.OPENING_STATE), '#');
  const state = {...plain(parts.OPENING_STATE), view: 'callers', zoom: 12,
                 search: 'a+b&c=#d', matchCase: true, name: 'f(<x>)',
                 hideIdle: true, table: false, order: 'name'};
  equal(parts.parseState(parts.formatState(state)), state);
  equal(parts.parseState('#view=evil&zoom=-1&sort=x&__proto__=1&nonsense=2'),
        plain(parts.OPENING_STATE));
  equal(parts.parseState('#search=Sort&group=process').group, 'process');
});

test('A folded frame can neither end a frame nor count.', () => {
  equal(['a;b', 'x 7', 'f 12 7', '-', '_[k]', 'g_[i]', 'a b'].map(
            (name) => parts.foldedName(name)),
        ['a:b', 'x_7', 'f_12_7', '_', '_(k)', 'g_(i)', 'a b']);
});

test('A picture is text alone, whatever names are.', () => {
  const evil = '</title><script>alert(1)</script>"&';
  const box = parts.svgBox({left: 0, top: 0, width: 9},
                           {title: evil, label: evil, colour: 'hsl(1 2% 3%)'});
  assert.ok(!box.includes('<script') && !box.includes('"&"'), box);
  const svg = parts.svgText([box], {heading: evil, width: 9, height: 9,
                                    namespace: 'ns'});
  equal([...svg.matchAll(/<(\w+)/g)].map(([, name]) => name),
        ['svg', 'rect', 'text', 'g', 'title', 'rect', 'text']);
});

test('a time has steps that people reckon with, and not too many', () => {
  equal([900, 3600, 86400, 604800].map(parts.stepOf), [1, 10, 120, 900]);
  for (const seconds of [1, 901, 12345, 9e6, 3e7]) {
    assert.ok(seconds / parts.stepOf(seconds) <= 900);
  }
  equal(parts.snapped({from: 12, until: 29}, 10), {from: 10, until: 30});
  equal(parts.snapped({from: 10, until: 10}, 10), {from: 10, until: 20});
});

test('marks of an axis are full units, and as many as there is room for', () => {
  const ticks = parts.ticksOf({from: 1795572785, until: 1795573685}, 10);
  assert.ok(ticks.length > 3 && ticks.length <= 11);
  for (const {at} of ticks) assert.equal(at % 60, 0);
  assert.ok(parts.ticksOf({from: 0, until: 604800}, 8).length <= 9);
});

test('values are averages over what is known', () => {
  equal(parts.averageOf(5e8, 1000, 'nanoseconds'), 0.5);
  equal(parts.averageOf(50, 500, 'count'), 100);
  equal(parts.averageOf(50, 0, 'count'), 0);
  equal(parts.averageUnit({kind: 'cpu', unit: 'nanoseconds'}), 'CPUs');
  equal(parts.averageUnit({kind: 'blocked', unit: 'nanoseconds'}), 'threads');
});

// Two steps of a second; waits were sampled in the second one only.
const lanedLine = {
  from: 100, step: 1, kind: 'cpu', unit: 'nanoseconds', known_ms: [1000, 1000],
  lanes: [
    {kind: 'cpu', unit: 'nanoseconds', known_ms: [1000, 1000]},
    {kind: 'runnable', unit: 'nanoseconds', known_ms: [0, 1000]},
    {kind: 'blocked', unit: 'nanoseconds', known_ms: [0, 1000]},
  ],
  rows: [
    {values: [5e8, 1e9], others: [[0, 0], [0, 2e9]]},
    {values: [0, 0], others: [[0, 0], [0, 4e9]]},
  ],
};

test('a row has a lane for each kind, each on its own scale', () => {
  const lanes = parts.lanesOf(lanedLine);
  equal(lanes.map(({kind}) => kind), ['cpu', 'runnable', 'blocked']);
  equal(lanes.map(({most}) => most), [1e6, 0, 4e6]);
  for (let i = 1; i < lanes.length; ++i) {
    assert.ok(lanes[i].top > lanes[i - 1].top + lanes[i - 1].height - 1);
    assert.ok(lanes[i].height < lanes[0].height);
  }
  const {top, height} = lanes[2];
  assert.ok(parts.rowPixels(lanes) > top + height);
  const {lanes: none, ...alone} = lanedLine;
  equal(parts.lanesOf(alone).map(({kind}) => kind), ['cpu']);
  equal(parts.rowPixels(parts.lanesOf(alone)), 18);
  const colours = ['cpu', 'runnable', 'blocked'].map(
      (kind) => parts.laneColour(kind, 1, false));
  equal(new Set(colours).size, 3);
  // Nothing of nothing, where a lane is empty.
  equal(parts.laneColour('cpu', 0 / 0, false),
        parts.laneColour('blocked', 0, false));
});

test('lanes say what they have, and what was not sampled', () => {
  const lanes = parts.lanesOf(lanedLine);
  const texts = (row, step) => lanes.map(
      (lane) => parts.laneText(lane, lanedLine.rows[row], step));
  equal(texts(0, 1),
        ['1.000 CPUs', '0.000 threads runnable', '2.000 threads blocked']);
  equal(texts(0, 0),
        ['0.500 CPUs', 'runnable not sampled', 'blocked not sampled']);
});

test('kinds have one order, and those of a range are known', () => {
  const [cpu, runnable, blocked] = lanedLine.lanes;
  equal(parts.kindsOf({lanes: [blocked, cpu, runnable]}),
        ['cpu', 'runnable', 'blocked']);
  equal(parts.kindsOf({}), []);
  const kinds = (from, until) =>
      parts.otherKindsIn(lanedLine, {from, until});
  equal(kinds(100, 101), []);
  equal(kinds(100, 102), ['blocked']);
  equal(kinds(50, 90), []);
  equal(kinds(200, 300), []);
  equal(parts.otherKindsIn({rows: []}, {from: 0, until: 1}), []);
});

test('an address of the history has what differs, and comes back', () => {
  const state = {...parts.OPENING, last: 3600, a: {from: 10, until: 20},
                 by: 'comm', unit: ['<b>&#'], name: 'f=1', module: '/x y'};
  equal(parts.parseAddress(parts.formatAddress(state)), plain(state));
  equal(parts.formatAddress(parts.OPENING), '#');
  equal(parts.parseAddress('#last=0&a=20-10&b=x&by=colour&window=1-2e9&z=1'),
        plain(parts.OPENING));
  equal(parts.parseAddress('#__proto__=x&constructor=y'),
        plain(parts.OPENING));
});

test('names of pods are cut in the middle, ids at the end', () => {
  const pod = 'production/checkout-service-7d9fd6b5c-x2xqz';
  const label = parts.rowLabel(pod, 'pod');
  equal([...label].length, 38);
  equal([label.slice(0, 11), label.slice(-8)], ['production/', '5c-x2xqz']);
  equal(parts.rowLabel(pod.slice(-38), 'pod'), pod.slice(-38));
  equal(parts.rowLabel('f'.repeat(64), 'container'), 'f'.repeat(12));
  equal(parts.rowLabel('f'.repeat(64), 'comm'), 'f'.repeat(64));
  // No character is cut in two.
  equal([...parts.rowLabel('\u{1f600}'.repeat(50), 'container')].length, 38);
  equal(parts.parseAddress('#by=pod&pod=a%2Fb').pod, ['a/b']);
});

test('a window that is not fixed ends now', () => {
  equal(parts.windowOf({...parts.OPENING, last: 60}, 1000),
        {from: 940, until: 1000});
  equal(parts.windowOf({...parts.OPENING, window: {from: 1, until: 2}}, 1000),
        {from: 1, until: 2});
  const query = parts.queryOf({...parts.OPENING, unit: ['a&b'], kind: 'blocked'},
                              {from: 1, until: 2});
  equal(String(query), 'from=1&until=2&unit=a%26b&kind=blocked');
});

test('a machine has one name a filter, and no second side', () => {
  const state = parts.parseAddress('#unit=a&unit=b&before_unit=c&unit=');
  equal(state.unit, ['a']);
  equal('before_unit' in state, false);
});

test('the sides of a fleet are lists of names in the address', () => {
  const state = {...fleet.OPENING, host: ['a', 'b&c'], before_host: ['d'],
                 service: ['x'], function: ['main']};
  equal(fleet.parseAddress(fleet.formatAddress(state)), plain(state));
  equal(fleet.formatAddress(state),
        '#service=x&host=a&host=b%26c&function=main&before_host=d');
  equal(fleet.parseAddress('#host=a&host=a&host=&before_function=f').host, ['a']);
  const many = Array.from({length: 70}, (_, i) => `host=${i}`).join('&');
  equal(fleet.parseAddress(`#${many}`).host.length, fleet.MOST_NAMES);
});

test('what is asked of two sides', () => {
  const range = {from: 10, until: 20};
  const state = {...fleet.OPENING, service: ['x'], host: ['a'],
                 before_host: ['b', 'c']};
  equal(fleet.isCompared(fleet.OPENING), false);
  equal(fleet.isCompared(state), true);
  equal(fleet.isCompared({...fleet.OPENING, b: range}), true);
  const text = (query) => String(query);
  equal(text(fleet.queryOf(state, range)), 'from=10&until=20&service=x&host=a');
  equal(text(fleet.queryOf(fleet.secondSide(state), range)),
        'from=10&until=20&service=x&host=b&host=c');
  equal(text(fleet.queryOf(fleet.bothSides(state), range)),
        'from=10&until=20&service=x&host=a&host=b&host=c');
  equal(text(fleet.differenceOf(state, range)),
        'from=10&until=20&service=x&host=a&before_host=b&before_host=c');
  equal(text(fleet.differenceOf({...state, b: {from: 1, until: 9}}, range)),
        'from=10&until=20&service=x&host=a&before=1&before_until=9&' +
        'before_host=b&before_host=c');
  // The map of all hosts and one of them is of all.
  equal(fleet.bothSides({...state, host: []}).host, []);
  equal(fleet.namesText({...state, host: ['a', 'b', 'c', 'd', 'e']}),
        ', service x, host a, b, c and 2 more');
});

test('a moment goes into its field and comes back', () => {
  const at = 1795737601;
  equal(fleet.timeOfField(fleet.fieldOfTime(at)), at);
  equal(fleet.timeOfField(''), null);
});

test('A time of slices has thousandths, in the address and in questions.', () => {
  const {parseAddress, formatAddress, queryOf, OPENING, rangeText, lengthText} =
      parts;
  const state = parseAddress('#a=100.240-100.480&fine=60-120&b=7.000-8.000');
  equal(state.a, {from: 100.24, until: 100.48, isFine: true});
  equal(state.b, {from: 7, until: 8, isFine: true});
  equal(state.fine, {from: 60, until: 120});
  assert.equal(parseAddress(formatAddress(state)).a.until, 100.48);
  assert.match(formatAddress(state), /b=7.000-8.000/);
  const query = queryOf(OPENING, state.b);
  assert.equal(query.get('from'), '7.000');
  assert.equal(query.get('until'), '8.000');
  assert.equal(queryOf(OPENING, {from: 7, until: 8}).get('from'), '7');
  // Only the chosen times have them.
  for (const text of ['window=1.500-2.500', 'fine=1.500-2.500', 'a=1.5-2.5',
                      'a=2.500-2.500', 'a=3.000-2']) {
    const [key] = text.split('=');
    equal(parseAddress(`#${text}`)[key], null);
  }
  assert.match(rangeText(state.a), /:40\.240 to \d\d:\d\d:40\.480$/);
  assert.equal(lengthText(100.48 - 100.24), '240 ms');
  assert.equal(lengthText(8.0001 - 7.0001), '1 s');
});

test('Slices lie in columns of seconds.', () => {
  const {fineTimeOf, rangeOfSlices, columnsOf} = parts;
  equal(fineTimeOf({from: 10.2, until: 11.1}), {from: 10, until: 12});
  equal(fineTimeOf({from: 0, until: 900}), {from: 720, until: 900});
  const line = {from: 1000, known_ms: new Array(150).fill(20)};
  equal(rangeOfSlices(line, 3, 1), {from: 1000.02, until: 1000.08, isFine: true});
  equal(rangeOfSlices(line, 49, 49), {from: 1000.98, until: 1001, isFine: true});
  equal(columnsOf(line, {from: 1000.98, until: 1002.04}),
        [{column: 0, top: 49, bottom: 50}, {column: 1, top: 0, bottom: 50},
         {column: 2, top: 0, bottom: 2}]);
  equal(columnsOf(line, {from: 900, until: 1000.02}),
        [{column: 0, top: 0, bottom: 1}]);
  equal(columnsOf(line, {from: 1003, until: 1004}), []);
  // What is drawn for a range is what was marked.
  for (const [a, b] of [[0, 0], [7, 113], [99, 100]]) {
    const columns = columnsOf(line, rangeOfSlices(line, a, b));
    assert.equal(columns[0].column * 50 + columns[0].top, a);
    const last = columns[columns.length - 1];
    assert.equal(last.column * 50 + last.bottom, b + 1);
  }
});

console.log(`${count} properties hold`);
