// SPDX-License-Identifier: Apache-2.0
'use strict';

// The bar: its fields and buttons show the state and change it.
class Controls {
  // update(changes, {replace}): what a control asks for.
  // redraw(): what the window shows has another size or theme.
  constructor(data, {update, redraw}) {
    this.data = data;
    this.update = update;
    this.redraw = redraw;
    this.fill();
    this.listenToFields();
    this.listenToMenus();
  }

  fill() {
    for (const grouping of this.data.groupings()) {
      byId('group').append(make('option', grouping));
    }
    const kinds = this.data.kinds();
    byId('kinds').hidden = byId('kind-key').hidden = kinds.length === 0;
    byId('parked-field').hidden = this.data.parkedFrame < 0;
    for (const kind of kinds) {
      const option = make('option', cutEnd(kind, 40));
      option.value = kind;
      byId('kind').append(option);
    }
  }

  // The commands of the kind of samples that is shown.
  listCommands() {
    const commands = this.data.commands();
    byId('only').length = 1;
    const all = commands.reduce((sum, [, samples]) => sum + samples, 0);
    for (const [name, samples] of commands) {
      const share = percent(samples / all);
      const option = make('option', `${cutEnd(name, 40)} (${share})`);
      option.value = name;
      byId('only').append(option);
    }
  }

  listenToFields() {
    const {update} = this;
    byId('search').addEventListener('input', (event) =>
        update({search: event.target.value}, {replace: true}));
    const toggles = {'hide-kernel': 'hideKernel', 'hide-idle': 'hideIdle',
                     'parked': 'parked', 'table': 'table'};
    for (const [id, key] of Object.entries(toggles)) {
      byId(id).addEventListener(
          'change', (event) => update({[key]: event.target.checked}));
    }
    for (const key of ['kind', 'group', 'order', 'only']) {
      byId(key).addEventListener(
          'change', (event) => update({[key]: event.target.value}));
    }
    byId('match-case').addEventListener('click', () =>
        update({matchCase: !this.state.matchCase}, {replace: true}));
    byId('direction').addEventListener('click', () => this.flip());
    byId('reset').addEventListener('click', () => update({zoom: 0}));
    byId('theme').addEventListener('click', () => this.switchTheme());
    matchMedia('(prefers-color-scheme: dark)').addEventListener(
        'change', () => {
          this.nameTheme();
          this.redraw();
        });
    for (const button of byId('views').children) {
      button.addEventListener('click', () => this.chooseView(button));
    }
  }

  listenToMenus() {
    const menus = [...document.querySelectorAll('.menu')];
    document.addEventListener('click', (event) => {
      for (const menu of menus) {
        if (!menu.contains(event.target)) menu.open = false;
      }
    });
    document.addEventListener('keydown', (event) => {
      const open = menus.find((menu) => menu.open);
      if (event.key !== 'Escape' || !open) return;
      open.open = false;
      open.querySelector('summary').focus();
      event.stopImmediatePropagation();
    });
    byId('about-open').addEventListener(
        'click', () => byId('about-box').showModal());
    byId('about-close').addEventListener(
        'click', () => byId('about-box').close());
  }

  // On a narrow screen the table is a view.
  chooseView(button) {
    const {view} = button.dataset;
    document.body.classList.toggle('only-table', view === 'functions');
    if (view !== 'functions') this.update({view});
    this.show(this.state);
    this.redraw();
  }

  nextKind() {
    const kinds = this.data.kinds();
    if (kinds.length === 0) return;
    const at = kinds.indexOf(this.state.kind || kinds[0]);
    this.update({kind: kinds[(at + 1) % kinds.length]});
  }

  flip() {
    this.update({roots: this.state.roots === 'below' ? 'top' : 'below'});
  }

  switchTheme() {
    document.documentElement.dataset.theme = isDark() ? 'light' : 'dark';
    this.nameTheme();
    this.redraw();
  }
  nameTheme() {
    byId('theme').textContent = isDark() ? 'Light' : 'Dark';
  }

  // Buttons say what they do, not what is.
  show(state) {
    this.state = state;
    if (byId('search').value !== state.search) {
      byId('search').value = state.search;
    }
    byId('match-case').setAttribute('aria-pressed', state.matchCase);
    byId('kind').value = state.kind || (this.data.kinds()[0] ?? '');
    byId('group').value = state.group;
    byId('order').value = state.order;
    byId('only').value = state.only;
    byId('hide-kernel').checked = state.hideKernel;
    byId('hide-idle').checked = state.hideIdle;
    byId('parked').checked = state.parked;
    byId('table').checked = state.table;
    byId('show-menu').classList.toggle('active',
        state.hideKernel || state.hideIdle || state.parked ||
            state.only !== '');
    document.body.classList.toggle('no-table', !state.table);
    const onlyTable = document.body.classList.contains('only-table');
    for (const button of byId('views').children) {
      const {view} = button.dataset;
      button.setAttribute('aria-pressed', view === 'functions' ? onlyTable :
          view === state.view && !(onlyTable && innerWidth <= 760));
    }
    byId('direction').textContent =
        state.roots === 'below' ? 'Roots on top' : 'Roots below';
    byId('direction').hidden = state.view === 'callers';
    byId('reset').hidden = state.zoom === 0;
    this.nameTheme();
  }
}
