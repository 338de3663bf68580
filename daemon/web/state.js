// SPDX-License-Identifier: Apache-2.0
'use strict';

// What the page shows, as the address has it behind '#': only what differs
// from how a page opens. What is not known is passed over.
const VIEWS = ['flame', 'bottom-up', 'callers'];
const OPENING_STATE = {
  view: 'flame', kind: '', group: '', order: 'weight', roots: 'below', search: '',
  matchCase: false, zoom: 0, name: '', module: '', hideKernel: false,
  hideIdle: false, parked: false, only: '', sort: 'self', table: true,
};
const CHOICES = {
  view: VIEWS, order: ['weight', 'name'], roots: ['below', 'top'],
  sort: ['self', 'total', 'name', 'change'],
};

function parseState(hash) {
  const state = {...OPENING_STATE};
  for (const [key, text] of new URLSearchParams(hash.replace(/^#/, ''))) {
    if (!Object.hasOwn(state, key)) continue;
    if (CHOICES[key]) {
      if (CHOICES[key].includes(text)) state[key] = text;
    } else if (typeof state[key] === 'boolean') {
      state[key] = text === '1';
    } else if (key === 'zoom') {
      state.zoom = /^\d{1,9}$/.test(text) ? Number(text) : 0;
    } else {
      state[key] = text;
    }
  }
  return state;
}

function formatState(state) {
  const text = new URLSearchParams();
  for (const [key, value] of Object.entries(state)) {
    if (value === OPENING_STATE[key]) continue;
    text.set(key, typeof value === 'boolean' ? Number(value) : value);
  }
  return `#${text}`;
}

// Where the state is kept.
const address = {
  write(text, {replace}) {
    if (replace) {
      history.replaceState(null, '', text);
    } else {
      history.pushState(null, '', text);
    }
  },
};
