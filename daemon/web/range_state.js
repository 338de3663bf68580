// SPDX-License-Identifier: Apache-2.0
'use strict';

// The state of the history's page, as its address has it behind '#'. Keys that
// are not known are passed over. Nothing here knows of a document.
const FILTERS = FILTER_FIELDS.map(({filter}) => filter);
const SET_FILTERS = FILTER_FIELDS.filter(({isSet}) => isSet)
    .map(({filter}) => filter);
// The names of the second side, where they differ from those of the first.
const beforeOf = (filter) => `before_${filter}`;
const BEFORE_FILTERS = SET_FILTERS.map(beforeOf);
const NAME_LISTS = [...FILTERS, ...BEFORE_FILTERS];
const MOST_NAMES = 64;  // of a list
const OPENING = {
  last: 900,      // the window's seconds, ending now; or it is ...
  window: null,   // ... {from, until}
  a: null,        // the chosen range, and the one it is compared with
  b: null,
  fine: null,     // the seconds that are shown in slices
  live: 0,        // 1: it goes on with time, unless there is a window
  by: ROWS[0].by, step: 0, kind: '',
  ...Object.fromEntries(NAME_LISTS.map((list) => [list, []])),
  name: '', module: '',  // the chosen function
  view: 'flame', sort: 'self', flame: '',
};
const RANGE_KEYS = ['window', 'a', 'b', 'fine'];
const FINE_KEYS = ['a', 'b'];
const RANGE_CHOICES = {
  by: ROWS.map(({by}) => by),
  view: ['flame', 'functions'],
  sort: ['self', 'total', 'name', 'change'],
};
const LONGEST_WINDOW = 400 * 86400;

// With thousandths only where a range may be fine.
function parseRange(key, text) {
  const found = /^(\d{1,10}(\.\d{3})?)-(\d{1,10}(\.\d{3})?)$/.exec(text);
  if (!found) return null;
  const [from, until] = [Number(found[1]), Number(found[3])];
  if (from >= until || until - from > LONGEST_WINDOW) return null;
  const isFine = (found[2] ?? found[4]) !== undefined;
  if (!isFine) return {from, until};
  return FINE_KEYS.includes(key) ? {from, until, isFine} : null;
}

const endsOf = ({from, until, isFine}) =>
    isFine ? [exactText(from), exactText(until)] : [from, until];

function formatRange(range) {
  return endsOf(range).join('-');
}

// A list of names with one more, if it is none and there is room.
function withName(list, names, name) {
  const most = FILTERS.includes(list) && !SET_FILTERS.includes(list) ?
      1 : MOST_NAMES;
  return name === '' || names.includes(name) || names.length >= most ?
      names : [...names, name];
}

function parseAddress(hash) {
  const state = {...OPENING};
  for (const [key, text] of new URLSearchParams(hash.replace(/^#/, ''))) {
    if (!Object.hasOwn(OPENING, key)) continue;
    if (NAME_LISTS.includes(key)) {
      state[key] = withName(key, state[key], text);
    } else if (RANGE_KEYS.includes(key)) {
      state[key] = parseRange(key, text);
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
    if (NAME_LISTS.includes(key)) {
      for (const name of value) text.append(key, name);
      continue;
    }
    text.set(key, RANGE_KEYS.includes(key) ? formatRange(value) : value);
  }
  return `#${text}`;
}

// The window of a state: {from, until}.
function windowOf(state, now) {
  return state.window ?? {from: now - state.last, until: now};
}

// Whether two sides are compared: by their times, by their names or by both.
function isCompared(state) {
  return state.b !== null ||
      BEFORE_FILTERS.some((list) => state[list].length > 0);
}

// The state with the names of the second side in place of the first one's.
function secondSide(state) {
  const names = SET_FILTERS.filter((filter) => state[beforeOf(filter)].length > 0)
      .map((filter) => [filter, state[beforeOf(filter)]]);
  return {...state, ...Object.fromEntries(names)};
}

// The same with the names of both, as the map has them.
function bothSides(state) {
  const names = SET_FILTERS.filter((filter) => state[beforeOf(filter)].length > 0)
      .map((filter) => [filter, state[filter].length === 0 ? [] :
          [...new Set([...state[filter], ...state[beforeOf(filter)]])]
              .slice(0, MOST_NAMES)]);
  return {...state, ...Object.fromEntries(names)};
}

// The parameters of a question about a range: its times and the filters.
function queryOf(state, range) {
  const [from, until] = endsOf(range);
  const query = new URLSearchParams({from, until});
  for (const filter of FILTERS) {
    for (const name of state[filter]) query.append(filter, name);
  }
  if (state.kind) query.set('kind', state.kind);
  return query;
}

// The same, about what the second side differs in.
function differenceOf(state, range) {
  const query = queryOf(state, range);
  if (state.b) {
    const [from, until] = endsOf(state.b);
    query.set('before', from);
    query.set('before_until', until);
  }
  for (const list of BEFORE_FILTERS) {
    for (const name of state[list]) query.append(list, name);
  }
  return query;
}

// What a side keeps to, in words: its names by filter.
function namesText(state) {
  return SET_FILTERS.filter((filter) => state[filter].length > 0)
      .map((filter) => `, ${filter} ${state[filter].slice(0, 3).join(', ')}` +
          (state[filter].length > 3 ? ` and ${state[filter].length - 3} more` :
                                      ''))
      .join('');
}
