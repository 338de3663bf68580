// SPDX-License-Identifier: Apache-2.0
'use strict';

// The fields of the filter menu, and the chips of what is kept to. A field holds
// one name; of several only their number is in it.
function fieldText(names) {
  return names.length === 1 ? names[0] : '';
}

function fillFilters(state) {
  for (const {filter, hint = ''} of FILTER_FIELDS) {
    const field = byName(`filter-${filter}`);
    const names = state[filter];
    field.value = fieldText(names);
    field.placeholder = names.length > 1 ? `${names.length} names` : hint;
  }
  byName('filter-menu').classList.toggle(
      'active', FILTERS.some((filter) => state[filter].length > 0));
}

// What the fields ask for; one that nobody touched keeps its names.
function readFilters(state) {
  return Object.fromEntries(FILTERS.map((filter) => {
    const text = byName(`filter-${filter}`).value.trim();
    return [filter, text === fieldText(state[filter]) ? state[filter] :
        withName(filter, [], text)];
  }));
}

// remove(list, name): a chip was clicked.
function showChips(state, remove) {
  byName('chips').replaceChildren(...NAME_LISTS.flatMap((list) => {
    const isSecond = BEFORE_FILTERS.includes(list);
    const what = isSecond ? `compared with ${list.slice('before_'.length)}` : list;
    return state[list].map((name) => {
      const chip = element('button', `${what}: ${shortened(name, 80)} ✕`,
                           isSecond ? 'second' : '');
      chip.type = 'button';
      chip.title = 'Take this filter away';
      chip.addEventListener('click', () => remove(list, name));
      return chip;
    });
  }));
}
