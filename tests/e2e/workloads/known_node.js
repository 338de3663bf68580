// SPDX-License-Identifier: Apache-2.0
// A JavaScript program whose calls are known to tests/e2e/test_node.py.
//
//   known_node.js SECONDS    makes all of them in turn for so long
'use strict';

function leaf(number) {
  let total = 0;
  for (let i = 0; i < 40; i++) total += Math.sqrt(i) ^ number;
  return total;
}

function compare(a, b) { return leaf(a) - leaf(b); }
function bySort() { return [5, 3, 8, 1, 9, 2].sort(compare); }

const mapped = (number) => leaf(number);
function byMap() {
  return Array.from({length: 20}, (_, i) => i).map(mapped);
}

function recurse(depth) {
  if (depth === 0) return leaf(1);
  return recurse(depth - 1) + 1;
}

class Thing {
  constructor(number) { this.number = leaf(number); }
  method() { return this.#hidden() + 1; }
  static still(number) { return leaf(number); }
  #hidden() { return leaf(this.number & 7); }
}
function byClass() {
  let total = 0;
  for (let i = 0; i < 20; i++) total += new Thing(i).method() + Thing.still(i);
  return total;
}

function byClosure() {
  const bound = 20;
  const inner = function () {
    let total = 0;
    for (let i = 0; i < bound; i++) total += leaf(i);
    return total;
  };
  return inner();
}

function* numbers() { for (let i = 0; i < 20; i++) yield leaf(i); }
function byGenerator() {
  let total = 0;
  for (const number of numbers()) total += number;
  return total;
}

function replacer(text) { return String(leaf(text.length)); }
function byReplace() { return 'abcdefgh'.replace(/[a-h]/g, replacer); }

async function byAsync() {
  await null;
  for (let i = 0; i < 20; i++) leaf(i);
}

function größe() { return leaf(3) + leaf(4); }
function 大きさ() { return leaf(5) + leaf(6); }

function all() {
  bySort();
  byMap();
  for (let i = 0; i < 10; i++) recurse(50);
  byClass();
  byClosure();
  byGenerator();
  byReplace();
  for (let i = 0; i < 10; i++) größe();
  for (let i = 0; i < 10; i++) 大きさ();
  byAsync();
}

const end = Date.now() + 1000 * Number(process.argv[2]);
function turn() {
  for (let i = 0; i < 10; i++) all();
  if (Date.now() < end) setImmediate(turn);
}
process.stdout.write('ready\n');
turn();
