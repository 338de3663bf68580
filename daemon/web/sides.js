// SPDX-License-Identifier: Apache-2.0
'use strict';

const MOST_SIDE_ROWS = 100;

// A name of a list goes in, or out if it is in.
function toggled(names, name) {
  return names.includes(name) ? names.filter((each) => each !== name) :
                                [...names, name];
}

// The menu that says what is compared with what: names for each of two sides, or
// what was before a moment with what was after it.
class SidesMenu {
  // actions: names(by): a promise of the names there are, the largest first, as
  // the service gives them; change(changes): of the state; split(seconds).
  constructor(actions) {
    this.actions = actions;
    this.found = [];
    this.menu = byName('sides-menu');
    byName('sides-names').hidden = SET_FILTERS.length === 0;
    byName('sides-by').replaceChildren(...ROWS.filter(
        ({filter}) => SET_FILTERS.includes(filter)).map(({by, text}) => {
      const option = element('option', text);
      option.value = by;
      return option;
    }));
    this.menu.addEventListener('toggle', () => this.menu.open && this.open());
    byName('sides-by').addEventListener('change', () => this.load());
    byName('sides-search').addEventListener('input', () => this.paint());
    byName('split-at').addEventListener('keydown', (event) => {
      if (event.key === 'Enter') this.split();
    });
    byName('split').addEventListener('click', () => this.split());
  }

  get filter() {
    return rowsBy(byName('sides-by').value)?.filter;
  }

  // The rows of the map are what a person has in mind.
  open() {
    const {by, filter} = rowsBy(this.state.by);
    if (SET_FILTERS.includes(filter)) byName('sides-by').value = by;
    if (byName('split-at').value === '') {
      byName('split-at').value =
          fieldOfTime(Math.floor((this.window.from + this.window.until) / 2));
    }
    this.load();
  }

  async load() {
    if (SET_FILTERS.length === 0) return;
    this.found = [];
    this.paint();
    const found = await this.actions.names(byName('sides-by').value);
    if (!found) return;
    this.found = found;
    this.paint();
  }

  // state, window: what the page shows.
  show(state, window) {
    this.state = state;
    this.window = window;
    this.menu.classList.toggle('active', isCompared(state));
    for (const box of byName('sides-list').querySelectorAll('input')) {
      box.checked = state[box.dataset.list].includes(box.dataset.name);
    }
  }

  // Names that are chosen are there whatever is looked for.
  paint() {
    const {state, filter} = this;
    if (!filter) return;
    const wanted = byName('sides-search').value.trim().toLowerCase();
    const chosen = [...new Set([...state[filter], ...state[beforeOf(filter)]])];
    const others = this.found.map(({name}) => name).filter(
        (name) => name !== '' && !chosen.includes(name) &&
            name.toLowerCase().includes(wanted));
    const shown = [...chosen, ...others.slice(0, MOST_SIDE_ROWS)];
    byName('sides-list').replaceChildren(
        ...shown.map((name) => this.makeRow(name)));
    byName('sides-rest').textContent = others.length <= MOST_SIDE_ROWS ? '' :
        `${others.length - MOST_SIDE_ROWS} more: look for a part of the name`;
  }

  makeRow(name) {
    const row = element('div', '', 'side');
    const {filter} = this;
    row.append(element('span', shortened(name, 200)),
               this.makeBox(filter, name, 'first'),
               this.makeBox(beforeOf(filter), name, 'second'));
    return row;
  }
  makeBox(list, name, side) {
    const box = element('input');
    box.type = 'checkbox';
    box.className = side;
    box.checked = this.state[list].includes(name);
    box.dataset.list = list;
    box.dataset.name = name;
    box.setAttribute('aria-label', `${name}: ${side}`);
    box.addEventListener('change', () => {
      const names = toggled(this.state[list], name);
      box.checked = names.length <= MOST_NAMES && box.checked;
      if (names.length <= MOST_NAMES) this.actions.change({[list]: names});
    });
    return box;
  }

  split() {
    const seconds = timeOfField(byName('split-at').value);
    if (seconds === null) return;
    this.menu.open = false;
    this.actions.split(seconds);
  }
}
