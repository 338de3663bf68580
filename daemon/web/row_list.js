// SPDX-License-Identifier: Apache-2.0
'use strict';

// The names beside the heat map. A click on one keeps to it, and one on the sign
// before it compares with it; with Shift or Ctrl to what is chosen already as
// well.
class RowList {
  // update(changes): of the state.
  constructor(update) {
    this.update = update;
    this.place = byName('row-names');
    this.line = null;
  }

  show(line, state) {
    this.line = line;
    this.state = state;
    byName('history').classList.toggle('long-names', hasLongNames(state.by));
    this.place.replaceChildren(...(line?.rows ?? []).map(
        (row, i) => this.makeRow(row, i)));
  }
  // As high as the rows of the map.
  setHeight(pixels) {
    this.place.style.setProperty('--row', `${pixels}px`);
  }

  nameOf(i) {
    const row = this.line?.rows[i];
    if (!row) return '';
    if (row.rest) {
      return `${this.line.names - (this.line.rows.length - 1)} others`;
    }
    return rowName(row, this.state.by);
  }

  pointAt(row) {
    [...this.place.children].forEach(
        (name, i) => name.classList.toggle('at', i === row));
  }

  makeRow(row, i) {
    const name = this.nameOf(i);
    if (row.rest || row.name === '') return element('i', name);
    const {filter} = rowsBy(this.state.by);
    const made = element('div');
    if (SET_FILTERS.includes(filter)) {
      const versus = this.makeButton(i, '', true);
      versus.className = 'versus';
      versus.title = versus.ariaLabel = `Compare with ${name} (v)`;
      made.append(versus);
      made.classList.toggle('first', this.state[filter].includes(row.name));
      made.classList.toggle('second',
                            this.state[beforeOf(filter)].includes(row.name));
    }
    const button = this.makeButton(i, rowLabel(name, this.state.by), false);
    button.title = name;
    made.append(button);
    return made;
  }
  makeButton(i, text, isSecond) {
    const button = element('button', text);
    button.type = 'button';
    button.addEventListener('click', (event) => this.keepTo(i, {
      isSecond, more: event.shiftKey || event.ctrlKey || event.metaKey}));
    return button;
  }

  // What is compared with already is so no more.
  keepTo(i, {isSecond = false, more = false}) {
    const row = this.line?.rows[i];
    if (!row || row.rest || row.name === '') return;
    const {filter} = rowsBy(this.state.by);
    const isSet = SET_FILTERS.includes(filter);
    if (isSecond && !isSet) return;
    const list = isSecond ? beforeOf(filter) : filter;
    const names = this.state[list];
    const isSame = names.length === 1 && names[0] === row.name;
    this.update({[list]: more && isSet ?
        toggled(names, row.name).slice(0, MOST_NAMES) :
        isSecond && isSame ? [] : [row.name]});
  }
}
