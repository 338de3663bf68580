// SPDX-License-Identifier: Apache-2.0
'use strict';

const LIST_LETTER = 7.3;  // pixels of one in the table

// Columns of the table of functions, and the order of its rows.
class FunctionList {
  // data: the profile. element: the table's. actions: {choose(f), open(f),
  // sort(key)}.
  constructor(data, element, actions) {
    this.data = data;
    this.table = new FunctionTable(element, {
      columns: data.isDifference ? this.changeColumns() : this.columns(),
      ...actions,
    });
  }

  // totals: of functionTotals(); all: samples of everything.
  weigh(totals, all, grouping) {
    this.totals = totals;
    this.all = Math.max(1, all);
    this.swapped = grouping === 'before';
  }

  // hit: by frame, or null for all. Functions without samples are not there.
  show(sort, hit) {
    const {functions} = this.data;
    const {self, total, otherTotal} = this.totals;
    const listed = [];
    for (let f = 0; f < functions.length; ++f) {
      if (total[f] <= 0 && otherTotal[f] <= 0) continue;
      if (!hit || hit[functions[f]]) listed.push(f);
    }
    const isKnown = this.table.columns.some(({key}) => key === sort);
    const by = isKnown ? sort : this.table.columns[0].key;
    // Functions are numbered in the order of their names.
    if (by !== 'name') {
      const values = by === 'self' ? self : by === 'total' ? total :
          Float64Array.from(self, (_, f) => Math.abs(this.change(f).size));
      const order = Uint32Array.from(listed);
      order.sort((a, b) =>
          values[b] - values[a] || total[b] - total[a] || a - b);
      this.table.show(order, by);
    } else {
      this.table.show(Uint32Array.from(listed), by);
    }
  }

  frame(f) {
    return this.data.frames[this.data.functions[f]];
  }

  name(key) {
    return {
      key, title: 'Function', width: 'minmax(0, 1fr)',
      text: (f) => fitName(this.frame(f).name, this.letters()),
      fill: (f, cell) => {
        cell.firstChild.className = 'name';
        cell.title = cutEnd(this.frame(f).name, 1000);
        const {module} = this.frame(f);
        if (module) cell.append(make('span', module.split('/').pop(), 'file'));
      },
    };
  }

  // How many letters the column of names has room for.
  letters() {
    const taken = this.data.isDifference ? 232 : 164;
    const {clientWidth} = this.table.element;
    return Math.max(12, Math.floor((clientWidth - taken - 16) / LIST_LETTER));
  }

  columns() {
    const column = (key, title) => ({
      key, title, width: '82px',
      text: (f) => percent(this.totals[key][f] / this.all),
      share: (f) => this.totals[key][f] / this.all,
    });
    return [column('self', 'Self'), column('total', 'Total'),
            this.name('name')];
  }

  // What a function uses itself, before and after.
  change(f) {
    const {self, otherSelf} = this.totals;
    const [after, before] = this.swapped ? [otherSelf, self] :
                                           [self, otherSelf];
    return new Change(after[f], before[f], this.data.json.measure);
  }

  isUnsure(f) {
    const change = this.change(f);
    return change.size !== 0 && !change.isSure;
  }

  changeColumns() {
    const {measure} = this.data.json;
    const use = (key, title, value) => ({
      key, title, width: '72px',
      text: (f) => Change.usage(value(this.change(f)), measure),
    });
    return [
      {key: 'change', title: 'Change', width: '88px',
       text: (f) => this.change(f).text() +
           (this.isUnsure(f) ? ' ~' : ''),
       fill: (f, cell) => {
         cell.classList.toggle('unsure', this.isUnsure(f));
         if (this.isUnsure(f)) cell.title = 'within the sampling error';
       }},
      use('before', 'Before', ({before}) => before),
      use('after', 'After', ({after}) => after), this.name('name'),
    ];
  }
}
