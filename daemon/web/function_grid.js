// SPDX-License-Identifier: Apache-2.0
'use strict';

const FUNCTION_ROW_PIXELS = 22;
const MOST_NAME_LETTERS = 300;

// A new element with text; text never becomes markup.
function element(tag, text = '', className = '') {
  const made = document.createElement(tag);
  made.textContent = text;
  made.className = className;
  return made;
}

function shortened(text, most = MOST_NAME_LETTERS) {
  return text.length <= most ? text : `${text.slice(0, most)}…`;
}

function shareText(share) {
  return `${(100 * (share || 0)).toFixed(2)} %`;
}

// The use of functions, of whole stacks: a table of which the rows in sight are
// elements.
class FunctionGrid {
  // actions: choose(row, {stays}), where a row that is chosen already is chosen
  // no more unless it stays; open(row); sort(key).
  constructor(actions) {
    this.actions = actions;
    this.element = byName('functions');
    this.rows = [];
    this.head = element('div', '', 'row head');
    this.head.setAttribute('role', 'row');
    this.body = element('div', '', 'rows');
    this.body.setAttribute('role', 'rowgroup');
    this.element.append(this.head, this.body);
    this.element.addEventListener('scroll', () => this.paint());
    this.element.addEventListener('keydown', (event) => this.key(event));
    // A choice shows or hides the function's curve above the table, which moves
    // the rows away from the pointer. Both clicks of a double one are therefore
    // of the first one's row, whatever the second one hits.
    document.addEventListener(
        'click', (event) => this.click(event), {capture: true});
    document.addEventListener('dblclick', () => {
      if (!this.clicked) return;
      this.actions.choose(this.clicked, {stays: true});
      this.actions.open(this.clicked);
    });
  }

  click(event) {
    if (event.detail <= 1) {
      const row = event.target.closest('#functions .rows .row');
      this.clicked = row && this.rows[Number(row.dataset.place)];
      if (this.clicked) this.actions.choose(this.clicked);
    } else if (this.clicked) {
      event.stopPropagation();
      event.preventDefault();
    }
  }

  // table: what the service gave; before: the same of what it is compared with,
  // or null.
  show(table, before, sort) {
    this.isChange = before !== null;
    this.rows = this.isChange ? this.changes(table, before) :
        table.rows.map((row) => ({
          ...row, ownShare: row.self / table.sum, share: row.total / table.sum,
        }));
    const isKnown = this.columns().some(({key}) => key === sort);
    this.sort = isKnown ? sort : this.columns()[0].key;
    const orders = {
      self: (a, b) => b.self - a.self || b.total - a.total,
      total: (a, b) => b.total - a.total || b.self - a.self,
      change: (a, b) => Math.abs(b.change) - Math.abs(a.change),
      name: (a, b) => a.name < b.name ? -1 : Number(a.name > b.name),
    };
    this.rows.sort(orders[this.sort]);
    this.makeHead();
    this.element.setAttribute('aria-rowcount', this.rows.length + 1);
    this.body.style.height = `${this.rows.length * FUNCTION_ROW_PIXELS}px`;
    this.element.scrollTop = 0;
    this.paint();
  }

  // Times are averages, so that ranges of unlike length compare.
  changes(after, before) {
    const found = new Map();
    const add = (table, side) => {
      for (const row of table.rows) {
        const key = `${row.kind} ${row.module} ${row.name}`;
        const entry = found.get(key) ??
            {name: row.name, module: row.module, kind: row.kind, self: 0,
             total: 0, before: 0, after: 0};
        entry[side] = averageOf(row.self, table.known * 1000, table.unit);
        found.set(key, entry);
      }
    };
    add(before, 'before');
    add(after, 'after');
    return [...found.values()].map(
        (row) => ({...row, change: row.after - row.before}));
  }

  columns() {
    const name = {
      key: 'name', title: 'Function', width: 'minmax(0, 1fr)',
      fill: (row, cell) => {
        cell.append(element('span', shortened(row.name), 'name'));
        cell.title = shortened(row.name, 1000);
        const file = row.module.split('/').pop();
        if (file) cell.append(element('span', shortened(file, 60), 'file'));
      },
    };
    const number = (key, title, text, share) => ({
      key, title, width: '84px',
      fill: (row, cell) => {
        cell.append(element('span', text(row)));
        if (share) cell.style.setProperty('--share', `${100 * share(row)}%`);
      },
    });
    if (this.isChange) {
      const signed = ({change}) =>
          (change < 0 ? '\u2212' : '+') + averageText(Math.abs(change));
      return [number('change', 'Change', signed),
              number('before', 'Before', ({before}) => averageText(before)),
              number('after', 'After', ({after}) => averageText(after)), name];
    }
    return [
      number('self', 'Self', ({ownShare}) => shareText(ownShare),
             ({ownShare}) => ownShare),
      number('total', 'Total', ({share}) => shareText(share),
             ({share}) => share),
      name,
    ];
  }

  makeHead() {
    const columns = this.columns();
    this.element.style.setProperty(
        '--columns', columns.map(({width}) => width).join(' '));
    this.head.replaceChildren(...columns.map(({key, title}) => {
      const cell = element('div');
      cell.setAttribute('role', 'columnheader');
      cell.setAttribute('aria-sort', key !== this.sort ? 'none' :
          key === 'name' ? 'ascending' : 'descending');
      const button = element('button', title);
      button.type = 'button';
      // Before and after have no order of their own.
      button.disabled = key === 'before' || key === 'after';
      button.addEventListener('click', () => this.actions.sort(key));
      cell.append(button);
      return cell;
    }));
  }

  mark(name, module) {
    this.chosen = this.rows.findIndex(
        (row) => name !== '' && row.name === name && row.module === module);
    for (const row of this.body.children) {
      row.setAttribute('aria-selected',
                       Number(row.dataset.place) === this.chosen);
    }
    this.pointAt();
  }

  // Which row the keyboard is at.
  pointAt() {
    if (byName(`function-${this.chosen}`)) {
      this.element.setAttribute('aria-activedescendant',
                                `function-${this.chosen}`);
    } else {
      this.element.removeAttribute('aria-activedescendant');
    }
  }

  paint() {
    const {scrollTop, clientHeight} = this.element;
    const first = Math.max(0, Math.floor(scrollTop / FUNCTION_ROW_PIXELS) - 5);
    const end = Math.min(this.rows.length, 5 +
        Math.ceil((scrollTop + clientHeight) / FUNCTION_ROW_PIXELS));
    const columns = this.columns();
    const made = [];
    for (let i = first; i < end; ++i) made.push(this.makeRow(i, columns));
    this.body.replaceChildren(...made);
    this.pointAt();
  }

  makeRow(place, columns) {
    const row = element('div', '', 'row');
    row.id = `function-${place}`;
    row.dataset.place = place;
    row.setAttribute('role', 'row');
    row.setAttribute('aria-rowindex', place + 2);
    row.setAttribute('aria-selected', place === this.chosen);
    row.style.top = `${place * FUNCTION_ROW_PIXELS}px`;
    for (const {fill} of columns) {
      const cell = element('div');
      cell.setAttribute('role', 'gridcell');
      fill(this.rows[place], cell);
      row.append(cell);
    }
    return row;
  }

  key(event) {
    if (event.target !== this.element || this.rows.length === 0) return;
    const at = this.chosen ?? -1;
    if (event.key === 'Enter' && at >= 0) {
      this.actions.open(this.rows[at]);
    } else if (event.key === 'ArrowDown' || event.key === 'ArrowUp') {
      const next = Math.max(0, Math.min(
          this.rows.length - 1, at + (event.key === 'ArrowDown' ? 1 : -1)));
      this.actions.choose(this.rows[next], {stays: true});
      const top = next * FUNCTION_ROW_PIXELS;
      const room = this.element.clientHeight - this.head.offsetHeight;
      if (top < this.element.scrollTop) this.element.scrollTop = top;
      if (top + FUNCTION_ROW_PIXELS > this.element.scrollTop + room) {
        this.element.scrollTop = top + FUNCTION_ROW_PIXELS - room;
      }
    } else {
      return;
    }
    event.preventDefault();
  }
}
