// SPDX-License-Identifier: Apache-2.0
'use strict';

// What is shown by, and the filters, as ROWS and FILTER_FIELDS have them.
function makeChoices() {
  document.title = byName('title').textContent = PAGE_TITLE;
  byName('by').replaceChildren(...ROWS.map(({by, text}) => {
    const option = element('option', text);
    option.value = by;
    return option;
  }));
  for (const option of [...byName('step').options]) {
    const step = Number(option.value);
    if (step > 0 && step < LEAST_STEP) option.remove();
  }
  byName('key-versus').hidden = SET_FILTERS.length === 0;
  byName('fine').hidden = byName('key-fine').hidden = LEAST_STEP > 1;
  byName('filter-apply').before(...FILTER_FIELDS.map((field) => {
    const label = element('label', `${field.label} `);
    const input = element('input', '');
    input.id = `filter-${field.filter}`;
    input.spellcheck = false;
    input.autocomplete = 'off';
    if (field.isNumber) input.inputMode = 'numeric';
    label.append(input);
    return label;
  }));
}
