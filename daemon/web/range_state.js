// SPDX-License-Identifier: Apache-2.0
'use strict';

// The state of the history's page, as its address has it behind '#'. Keys that
// are not known are passed over. Nothing here knows of a document.
const FILTERS = FILTER_FIELDS.map(({filter}) => filter);
const OPENING = {
  last: 900,      // the window's seconds, ending now; or it is ...
  window: null,   // ... {from, until}
  a: null,        // the chosen range, and the one it is compared with
  b: null,
  live: 0,        // 1: it goes on with time, unless there is a window
  by: ROWS[0].by, step: 0, kind: '',
  ...Object.fromEntries(FILTERS.map((filter) => [filter, ''])),
  name: '', module: '',  // the chosen function
  view: 'flame', sort: 'self', flame: '',
};
const RANGE_KEYS = ['window', 'a', 'b'];
const RANGE_CHOICES = {
  by: ROWS.map(({by}) => by),
  view: ['flame', 'functions'],
  sort: ['self', 'total', 'name', 'change'],
};
const LONGEST_WINDOW = 400 * 86400;

function parseRange(text) {
  const found = /^(\d{1,10})-(\d{1,10})$/.exec(text);
  if (!found) return null;
  const [from, until] = [Number(found[1]), Number(found[2])];
  return from < until && until - from <= LONGEST_WINDOW ? {from, until} : null;
}

function formatRange({from, until}) {
  return `${from}-${until}`;
}

function parseAddress(hash) {
  const state = {...OPENING};
  for (const [key, text] of new URLSearchParams(hash.replace(/^#/, ''))) {
    if (!Object.hasOwn(OPENING, key)) continue;
    if (RANGE_KEYS.includes(key)) {
      state[key] = parseRange(text);
    } else if (RANGE_CHOICES[key]) {
      if (RANGE_CHOICES[key].includes(text)) state[key] = text;
    } else if (typeof OPENING[key] === 'number') {
      const number = /^\d{1,8}$/.test(text) ? Number(text) : OPENING[key];
      state[key] = Math.min(number, LONGEST_WINDOW);
    } else {
      state[key] = text;
    }
  }
  if (state.last < 1) state.last = OPENING.last;
  return state;
}

function formatAddress(state) {
  const text = new URLSearchParams();
  for (const [key, value] of Object.entries(state)) {
    if (value === null || value === OPENING[key]) continue;
    // Where the window is the range that ends now does not count.
    if (key === 'last' && state.window) continue;
    text.set(key, RANGE_KEYS.includes(key) ? formatRange(value) : value);
  }
  return `#${text}`;
}

// The window of a state: {from, until}.
function windowOf(state, now) {
  return state.window ?? {from: now - state.last, until: now};
}

// The parameters of a question about a range: its times and the filters.
function queryOf(state, {from, until}) {
  const query = new URLSearchParams({from, until});
  for (const filter of FILTERS) {
    if (state[filter]) query.set(filter, state[filter]);
  }
  if (state.kind) query.set('kind', state.kind);
  return query;
}
