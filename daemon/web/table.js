// SPDX-License-Identifier: Apache-2.0
'use strict';

const TABLE_ROW_PIXELS = 22;
const TABLE_ROWS_BEYOND = 10;

// A table of functions with any number of rows, of which those in sight are
// elements. One row can be chosen.
class FunctionTable {
  // element: scrolls. columns: {key, title, text(f), share(f), value(f)}, the
  // last one of which is the name. choose(f), open(f): for a click on a row,
  // and for Enter or a double click.
  constructor(element, {columns, choose, open, sort}) {
    this.element = element;
    this.columns = columns;
    this.choose = choose;
    this.open = open;
    this.order = [];
    this.chosen = -1;
    this.head = document.createElement('div');
    this.head.className = 'row head';
    this.head.setAttribute('role', 'row');
    for (const column of columns) this.head.append(this.makeHead(column, sort));
    this.body = document.createElement('div');
    this.body.className = 'rows';
    this.body.setAttribute('role', 'rowgroup');
    element.append(this.head, this.body);
    element.style.setProperty('--columns', columns.map(
        (column) => column.width).join(' '));
    element.addEventListener('scroll', () => this.paint());
    element.addEventListener('keydown', (event) => this.key(event));
    const rowOf = ({target}) => Number(
        target.closest('.rows .row')?.dataset.place ?? -1);
    element.addEventListener('click', (event) => {
      const place = rowOf(event);
      if (place >= 0) this.choose(this.order[place]);
    });
    element.addEventListener('dblclick', (event) => {
      const place = rowOf(event);
      if (place >= 0) this.open(this.order[place]);
    });
  }

  makeHead({key, title}, sort) {
    const cell = document.createElement('div');
    cell.setAttribute('role', 'columnheader');
    const button = document.createElement('button');
    button.type = 'button';
    button.textContent = title;
    button.addEventListener('click', () => sort(key));
    cell.append(button);
    return cell;
  }

  // functions: what is listed, sorted by `sort`. rows are drawn again.
  show(functions, sort) {
    this.order = functions;
    this.columns.forEach(({key}, i) => {
      this.head.children[i].setAttribute('aria-sort', key !== sort ? 'none' :
          key === 'name' ? 'ascending' : 'descending');
    });
    this.element.setAttribute('aria-rowcount', functions.length + 1);
    this.body.style.height = `${functions.length * TABLE_ROW_PIXELS}px`;
    this.paint(true);
  }

  // Rows stay the same elements, so that a second click is a double one.
  mark(chosen) {
    this.chosen = chosen;
    for (const row of this.body.children) {
      row.setAttribute('aria-selected',
                       this.order[Number(row.dataset.place)] === chosen);
    }
    this.pointAt();
  }

  // Which row the keyboard is at.
  pointAt() {
    const at = this.order.indexOf(this.chosen);
    if (at >= this.first && at < this.end) {
      this.element.setAttribute('aria-activedescendant', `row-${at}`);
    } else {
      this.element.removeAttribute('aria-activedescendant');
    }
  }

  paint(anew = false) {
    const {scrollTop, clientHeight} = this.element;
    const count = this.order.length;
    const first = Math.floor(scrollTop / TABLE_ROW_PIXELS);
    const end = Math.ceil((scrollTop + clientHeight) / TABLE_ROW_PIXELS);
    const isThere = first >= this.first && Math.min(end, count) <= this.end;
    if (!anew && isThere) return;
    this.first = Math.max(0, Math.min(first, count) - TABLE_ROWS_BEYOND);
    this.end = Math.min(count, end + TABLE_ROWS_BEYOND);
    const rows = [];
    for (let i = this.first; i < this.end; ++i) rows.push(this.makeRow(i));
    this.body.replaceChildren(...rows);
    this.pointAt();
  }

  makeRow(place) {
    const f = this.order[place];
    const row = document.createElement('div');
    row.className = 'row';
    row.id = `row-${place}`;
    row.dataset.place = place;
    row.setAttribute('role', 'row');
    row.setAttribute('aria-rowindex', place + 2);
    row.setAttribute('aria-selected', f === this.chosen);
    row.style.top = `${place * TABLE_ROW_PIXELS}px`;
    for (const column of this.columns) {
      const cell = document.createElement('div');
      cell.setAttribute('role', 'gridcell');
      const text = document.createElement('span');
      text.textContent = column.text(f);
      cell.append(text);
      if (column.share) {
        cell.style.setProperty('--share', `${100 * column.share(f)}%`);
      } else if (column.fill) {
        column.fill(f, cell);
      }
      row.append(cell);
    }
    return row;
  }

  // Arrow keys choose, Enter opens.
  key(event) {
    const at = this.order.indexOf(this.chosen);
    if (event.key === 'Enter' && at >= 0 && event.target === this.element) {
      this.open(this.chosen);
    } else if (event.key === 'ArrowDown' || event.key === 'ArrowUp') {
      const step = event.key === 'ArrowDown' ? 1 : -1;
      const next = Math.max(0, Math.min(this.order.length - 1, at + step));
      if (next !== at && this.order.length > 0) this.choose(this.order[next]);
      this.reveal(this.chosen);
    } else {
      return;
    }
    event.preventDefault();
    event.stopPropagation();
  }

  reveal(f) {
    const at = this.order.indexOf(f);
    if (at < 0) return;
    const top = at * TABLE_ROW_PIXELS;
    const {scrollTop, clientHeight} = this.element;
    const room = clientHeight - this.head.offsetHeight;
    if (top < scrollTop) this.element.scrollTop = top;
    if (top + TABLE_ROW_PIXELS > scrollTop + room) {
      this.element.scrollTop = top + TABLE_ROW_PIXELS - room;
    }
    this.paint(true);
  }
}
