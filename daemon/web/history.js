// SPDX-License-Identifier: Apache-2.0
'use strict';

// The page: its address, what it asks the service for, and where that is shown.
class HistoryPage {
  constructor() {
    this.service = new Service();
    this.map = new HeatMap({
      choose: (range, {isSecond}) => this.chooseRange(range, isSecond),
      say: (text) => byName('said').textContent = text,
      point: (row) => this.pointAt(row),
      nameOf: (row) => this.nameOfRow(row),
    });
    this.grid = new FunctionGrid({
      choose: (row, options) => this.chooseFunction(row, options),
      open: ({name, module}) => this.flame.send({callers: {name, module}}),
      sort: (sort) => this.update({sort}, {replace: true}),
    });
    this.flame = new FlameFrame(
        (flame) => this.update({flame}, {replace: true}));
    this.live = new LiveMode({
      isBusy: () => this.isLoadingMap || this.map.isMarking,
      advance: ({range}) => this.advance(range),
    });
    this.kinds = new KindSwitch((kind) => this.update({kind}));
    this.requests = {};
    makeChoices();
    this.listen();
    new Downloads(this.service, {
      range: () => this.range() ?? this.window(),
      query: (range) => queryOf(this.state, range),
      begin: () => this.begin('download'),
      fail: (error) => this.sayTrouble(error),
    });
    this.go(parseAddress(location.hash));
  }

  listen() {
    addEventListener('popstate', () => this.go(parseAddress(location.hash)));
    addEventListener('resize', () => this.redraw());
    addEventListener('keydown', (event) => this.key(event));
    matchMedia('(prefers-color-scheme: dark)').addEventListener(
        'change', () => this.redraw());
    for (const button of byName('lengths').children) {
      button.addEventListener('click', () => this.update(
          {last: Number(button.dataset.last), window: null, a: null, b: null}));
    }
    for (const button of byName('which').children) {
      button.addEventListener(
          'click', () => this.update({view: button.dataset.view}));
    }
    const clicks = {
      earlier: () => this.shift(-1), later: () => this.shift(1),
      closer: () => this.zoom(), refresh: () => this.refresh(),
      live: () => this.switchLive(),
      theme: () => this.switchTheme(),
      'no-b': () => this.update({b: null}),
      'compare': () => this.markSecond(),
      'keys-open': () => byName('keys-box').showModal(),
      'keys-close': () => byName('keys-box').close(),
      'filter-apply': () => this.applyFilters(),
    };
    for (const [id, action] of Object.entries(clicks)) {
      byName(id).addEventListener('click', action);
    }
    byName('by').addEventListener(
        'change', (event) => this.update({by: event.target.value}));
    byName('step').addEventListener('change', (event) =>
        this.update({step: Number(event.target.value)}));
    for (const filter of FILTERS) {
      byName(`filter-${filter}`).addEventListener('keydown', (event) => {
        if (event.key === 'Enter') this.applyFilters();
      });
    }
    byName('token-form').addEventListener('submit', (event) => {
      event.preventDefault();
      this.service.setToken(byName('token').value);
      byName('token-form').hidden = true;
      this.refresh();
    });
    this.listenToMenus();
  }

  listenToMenus() {
    const menus = [...document.querySelectorAll('.menu')];
    document.addEventListener('click', (event) => {
      for (const menu of menus) {
        if (!menu.contains(event.target)) menu.open = false;
      }
    });
    for (const menu of menus) {
      menu.addEventListener('keydown', (event) => {
        if (event.key !== 'Escape') return;
        menu.open = false;
        menu.querySelector('summary').focus();
      });
    }
  }

  update(changes, {replace = false} = {}) {
    const next = {...this.state, ...changes};
    const text = formatAddress(next);
    if (replace) {
      history.replaceState(null, '', text);
    } else if (text !== location.hash) {
      history.pushState(null, '', text);
    }
    this.go(next);
  }

  go(state) {
    const before = this.state;
    const differs = (...keys) => !before || keys.some(
        (key) => JSON.stringify(before[key]) !== JSON.stringify(state[key]));
    this.state = state;
    const isNewMap = differs('last', 'window', 'by', 'step', 'kind', ...FILTERS);
    if (!this.now || (isNewMap && !state.window)) this.now = this.present();
    if (isNewMap) this.loadMap();
    const isNewRange = differs('a', 'b', 'kind', ...FILTERS) ||
        (!state.a && isNewMap);
    if (isNewRange) {
      this.loadRange();
    } else if (differs('sort')) {
      this.showTable();
    }
    if (isNewMap || differs('name', 'module')) this.loadSeries();
    this.map.mark(state.a, state.b);
    this.live.set(state.live > 0 && !state.window);
    this.showControls();
  }

  // The window goes on; a time that was chosen stays.
  advance(range) {
    this.now = this.present();
    this.loadMap({isAdvance: true});
    this.loadSeries();
    if (range && !this.state.a) this.loadRange();
    this.showControls();
  }
  // From a window in the past to the present.
  switchLive() {
    if (this.live.isOn) {
      this.update({live: 0});
    } else {
      this.state = {...this.state, live: 1};
      this.refresh();
    }
  }

  present() {
    return Math.floor(Date.now() / 1000);
  }
  window() {
    return windowOf(this.state, this.now);
  }
  step() {
    const {from, until} = this.window();
    const least = stepOf(until - from);
    // Not more steps than the service gives.
    const {step} = this.state;
    return step >= LEAST_STEP && (until - from) / step <= 10000 ? step : least;
  }
  // The range that is shown below; a long window is not read unasked.
  range() {
    const {a} = this.state;
    if (a) return a;
    const window = this.window();
    return window.until - window.from <= 3600 ? window : null;
  }

  // One request of each kind: a newer one ends the one before.
  begin(kind) {
    this.requests[kind]?.abort();
    this.requests[kind] = new AbortController();
    return this.requests[kind].signal;
  }

  // isAdvance: nobody asked for it, so that it disturbs nothing.
  async loadMap({isAdvance = false} = {}) {
    const signal = this.begin('map');
    this.isLoadingMap = true;
    const step = this.step();
    const range = snapped(this.window(), step);
    const query = queryOf(this.state, range);
    query.set('step', step);
    query.set('by', this.state.by);
    query.set('lanes', 1);
    try {
      const line = await this.service.json('timeline', query, signal);
      if (signal.aborted) return;
      this.isLoadingMap = false;
      if (isAdvance && this.map.isMarking) return;
      this.line = line;
      this.say('');
    } catch (error) {
      if (error.name === 'AbortError') return;
      this.isLoadingMap = false;
      this.line = null;
      this.sayTrouble(error);
    }
    this.showMap();
  }

  showMap() {
    const {line} = this;
    const names = byName('row-names');
    byName('history').classList.toggle('long-names',
                                       hasLongNames(this.state.by));
    names.replaceChildren(...(line?.rows ?? []).map(
        (row, i) => this.makeRowName(row, i)));
    this.map.show(line);
    names.style.setProperty('--row', `${this.map.rowPixels}px`);
    this.map.mark(this.state.a, this.state.b);
    this.kinds.show(this.line, this.state.kind);
    this.showRange();
    const lost = line?.lost.reduce((sum, count) => sum + count, 0) ?? 0;
    const samples = line?.samples.reduce((sum, count) => sum + count, 0) ?? 0;
    byName('loss').textContent = lost === 0 ? '' :
        `${lost} of ${lost + samples} samples lost`;
    if (line) {
      const said = [];
      if (line.known === 0) said.push('Nothing is known of this time.');
      if (line.coarse) {
        said.push('There are too many names to keep all apart: rows may lack ' +
                  'what they used while they were small.');
      }
      if (line.folded_stacks > 0) {
        said.push(`Old files are thinned out: ${line.folded_stacks} stacks ` +
                  'that were seen once are [rare callees] of their callers.');
      }
      said.push(...line.warnings.map((text) => shortened(text)));
      if (!this.map.at) {
        byName('said').textContent = said.slice(0, 4).join(' · ');
      }
    }
  }

  nameOfRow(i) {
    const row = this.line?.rows[i];
    if (!row) return '';
    if (row.rest) return `${this.line.names - (this.line.rows.length - 1)} others`;
    return rowName(row, this.state.by);
  }

  // A click keeps to it.
  makeRowName(row, i) {
    const name = this.nameOfRow(i);
    if (row.rest || row.name === '') return element('i', name);
    const button = element('button', rowLabel(name, this.state.by));
    button.type = 'button';
    button.title = name;
    button.addEventListener('click', () => this.update(
        {[rowsBy(this.state.by).filter]: row.name}));
    return button;
  }

  pointAt(row) {
    [...byName('row-names').children].forEach(
        (name, i) => name.classList.toggle('at', i === row));
  }

  async loadRange() {
    const signal = this.begin('range');
    const range = this.range();
    const {b} = this.state;
    this.flame.clear();
    this.tables = null;
    if (!range) {
      document.body.classList.remove('busy');
      this.grid.show({rows: [], sum: 0}, null, this.state.sort);
      byName('range-a').textContent = 'Drag over the map to choose a time.';
      byName('range-b').textContent = '';
      return;
    }
    document.body.classList.add('busy');
    const query = queryOf(this.state, range);
    const difference = new URLSearchParams(query);
    if (b) {
      difference.set('before', b.from);
      difference.set('before_until', b.until);
    }
    try {
      const [after, before, profile] = await Promise.all([
        this.service.json('functions', query, signal),
        b ? this.service.json('functions', queryOf(this.state, b), signal) :
            null,
        b ? this.service.json('difference', difference, signal) :
            this.service.json('flame', query, signal),
      ]);
      if (signal.aborted) return;
      this.tables = {after, before};
      this.showTable();
      this.flame.show(profile, this.frameState());
      this.say('');
    } catch (error) {
      if (signal.aborted || error.name === 'AbortError') return;
      this.requests.range.abort();
      this.grid.show({rows: [], sum: 0}, null, this.state.sort);
      this.sayTrouble(error);
    }
    document.body.classList.remove('busy');
    this.showRange();
  }

  // A zoom, and a function that was chosen, are of one profile.
  frameState() {
    const parameters =
        new URLSearchParams(this.state.flame.replace(/^#/, ''));
    if (this.shownBefore) {
      for (const key of ['zoom', 'name', 'module']) parameters.delete(key);
    }
    this.shownBefore = true;
    return `#${parameters}`;
  }

  showTable() {
    if (!this.tables) return;
    const {after, before} = this.tables;
    this.grid.show(after, before, this.state.sort);
    this.grid.mark(this.state.name, this.state.module);
  }

  showRange() {
    if (!this.range()) return;
    const text = (name, range, table) => {
      const used = table ?
          `: ${averageText(averageOf(table.sum, table.known * 1000,
                                     table.unit))} ${averageUnit(table)}` : '';
      return `${name}${rangeText(range)}` +
          ` (${lengthText(range.until - range.from)})${used}`;
    };
    const {b} = this.state;
    byName('range-a').textContent =
        text('', this.range(), this.tables?.after) + this.otherKindsText();
    byName('range-b').textContent =
        b ? text('compared with ', b, this.tables?.before) : '';
  }

  // Where there is nothing of the kind that is shown: which kinds there are.
  otherKindsText() {
    if (this.tables?.after.sum !== 0) return '';
    const kinds = otherKindsIn(this.line, this.range());
    return kinds.length === 0 ? '' :
        `; there is ${kinds.map(kindText).join(' and ')} time`;
  }

  async loadSeries() {
    const signal = this.begin('series');
    const {name} = this.state;
    this.curve = null;
    byName('series').hidden = name === '';
    if (name === '') return;
    byName('series-name').textContent = shortened(name, 120);
    const step = this.step();
    const query = queryOf(this.state, snapped(this.window(), step));
    query.set('function', `=${name}`);
    query.set('step', step);
    try {
      const line = await this.service.json('timeline', query, signal);
      if (signal.aborted) return;
      this.curve = line;
      drawCurve(byName('curve'), line);
    } catch (error) {
      if (error.name !== 'AbortError') this.sayTrouble(error);
    }
  }

  chooseRange(range, isSecond) {
    this.markSecond(false);
    this.update(isSecond ? {b: range} : {a: range});
  }
  // The next marked time is the second one.
  markSecond(isSecond = !this.map.isSecond) {
    this.map.isSecond = isSecond;
    byName('compare').setAttribute('aria-pressed', isSecond);
  }

  chooseFunction({name, module}, {stays = false} = {}) {
    const again = !stays && name === this.state.name &&
        module === this.state.module;
    this.update(again ? {name: '', module: ''} : {name, module},
                {replace: true});
    this.grid.mark(this.state.name, this.state.module);
  }

  applyFilters() {
    byName('filter-menu').open = false;
    this.update(Object.fromEntries(FILTERS.map(
        (filter) => [filter, byName(`filter-${filter}`).value.trim()])));
  }

  shift(direction) {
    const {from, until} = this.window();
    const by = Math.max(1, Math.round((until - from) / 2)) * direction;
    const end = Math.min(until + by, this.present());
    this.update({window: {from: end - (until - from), until: end}});
  }
  zoom() {
    const {a} = this.state;
    if (a) this.update({window: a});
  }
  refresh() {
    this.now = this.present();
    const {window} = this.state;
    const last = window ? Math.min(604800, window.until - window.from) :
                          this.state.last;
    this.state = {...this.state, last, window: null};
    const shown = this.state;
    this.state = null;
    history.replaceState(null, '', formatAddress(shown));
    this.go(shown);
  }

  say(trouble) {
    byName('trouble').hidden = trouble === '';
    byName('trouble').textContent = shortened(trouble, 500);
  }
  sayTrouble(error) {
    if (error.status === 401) {
      byName('token-form').hidden = false;
      this.say('This service wants its token.');
    } else {
      this.say(error.message);
    }
  }

  showControls() {
    const {state} = this;
    for (const button of byName('lengths').children) {
      button.setAttribute('aria-pressed', !state.window &&
          Number(button.dataset.last) === state.last);
    }
    for (const button of byName('which').children) {
      button.setAttribute('aria-pressed', button.dataset.view === state.view);
    }
    document.body.classList.toggle('show-functions',
                                   state.view === 'functions');
    byName('by').value = state.by;
    this.kinds.show(this.line, this.state.kind);
    byName('step').value = state.step;
    byName('closer').disabled = !state.a;
    byName('live').setAttribute('aria-pressed', this.live.isOn);
    byName('no-b').hidden = !state.b;
    byName('window-text').textContent = rangeText(this.window());
    byName('theme').textContent = darkPage() ? 'Light' : 'Dark';
    for (const filter of FILTERS) {
      byName(`filter-${filter}`).value = state[filter];
    }
    byName('filter-menu').classList.toggle(
        'active', FILTERS.some((filter) => state[filter] !== ''));
    byName('chips').replaceChildren(...FILTERS.filter(
        (filter) => state[filter] !== '').map((filter) => {
      const chip = element('button',
                           `${filter}: ${shortened(state[filter], 80)} ✕`);
      chip.type = 'button';
      chip.title = 'Take this filter away';
      chip.addEventListener('click', () => this.update({[filter]: ''}));
      return chip;
    }));
  }

  switchTheme() {
    document.documentElement.dataset.theme = darkPage() ? 'light' : 'dark';
    this.flame.send({theme: document.documentElement.dataset.theme});
    this.redraw();
  }
  redraw() {
    this.map.draw();
    this.grid.paint();
    if (this.curve) drawCurve(byName('curve'), this.curve);
    this.showControls();
  }

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (byName('keys-box').open ||
        event.target.closest('input, select, iframe')) {
      return;
    }
    const actions = {
      '[': () => this.shift(-1), ']': () => this.shift(1),
      'z': () => this.zoom(), 'r': () => this.refresh(),
      'd': () => this.switchTheme(), 'l': () => this.switchLive(),
      'k': () => this.kinds.next(),
    };
    if (!Object.hasOwn(actions, event.key)) return;
    actions[event.key]();
    event.preventDefault();
  }
}

const page = new HistoryPage();
