// SPDX-License-Identifier: Apache-2.0
'use strict';

// The page: its address, what it asks the service for, and where that is shown.
class HistoryPage {
  constructor() {
    this.service = new Service();
    this.rows = new RowList((changes) => this.update(changes));
    const ofMaps = {
      choose: (range, {isSecond}) => this.chooseRange(range, isSecond),
      say: (text) => byName('said').textContent = text,
    };
    this.slices = new SliceMap(ofMaps);
    this.map = new HeatMap({
      ...ofMaps,
      point: (row) => this.rows.pointAt(row),
      nameOf: (row) => this.rows.nameOf(row),
      keep: (row, {isSecond}) => this.rows.keepTo(row, {isSecond}),
      split: (seconds) => this.split(seconds),
    });
    this.grid = new FunctionGrid({
      choose: (row, options) => this.chooseFunction(row, options),
      open: ({name, module}) => this.flame.send({callers: {name, module}}),
      sort: (sort) => this.update({sort}, {replace: true}),
    });
    this.flame = new FlameFrame(
        (flame) => this.update({flame}, {replace: true}));
    this.live = new LiveMode({
      isBusy: () => this.isLoadingMap || this.map.isMarking ||
          document.body.classList.contains('busy') || this.flame.isLoading,
      advance: ({range}) => this.advance(range),
    });
    this.kinds = new KindSwitch((kind) => this.update({kind}));
    this.requests = {};
    makeChoices();
    this.sides = new SidesMenu({
      names: (by) => this.namesBy(by),
      change: (changes) => this.update(changes),
      split: (seconds) => this.split(seconds),
    });
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
      live: () => this.switchLive(), fine: () => this.switchFine(),
      theme: () => this.switchTheme(),
      'no-b': () => this.update({b: null, ...Object.fromEntries(
          BEFORE_FILTERS.map((list) => [list, []]))}),
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
    const isNewMap = differs('last', 'window', 'by', 'step', 'kind', ...NAME_LISTS);
    if (!this.now || (isNewMap && !state.window)) this.now = this.present();
    if (isNewMap) this.loadMap();
    const isNewRange = differs('a', 'b', 'kind', ...NAME_LISTS) ||
        (!state.a && isNewMap);
    if (isNewRange) {
      this.loadRange();
    } else if (differs('sort')) {
      this.showTable();
    }
    if (isNewMap || differs('name', 'module')) this.loadSeries();
    if (differs('fine', 'name', 'module', ...NAME_LISTS)) this.loadSlices();
    this.map.mark(state.a, state.b);
    this.slices.mark(state.a, state.b);
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
    const query = queryOf(bothSides(this.state), range);
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
    this.rows.show(line, this.state);
    this.map.show(line);
    this.rows.setHeight(this.map.rowPixels);
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

  // The names that one side may have, whatever it has.
  async namesBy(by) {
    const {filter} = rowsBy(by);
    const others = bothSides({...this.state, [filter]: [], [beforeOf(filter)]: []});
    const query = queryOf(others, this.window());
    query.set('by', by);
    try {
      const {names} =
          await this.service.json('names', query, this.begin('names'));
      return names;
    } catch (error) {
      if (error.name !== 'AbortError') this.sayTrouble(error);
      return null;
    }
  }

  // What was after a moment of the window, and what was before it.
  split(seconds) {
    const {from, until} = this.window();
    if (seconds <= from || seconds >= until) {
      this.say('This moment is not within the time that is shown.');
      return;
    }
    this.update({a: {from: seconds, until}, b: {from, until: seconds}});
  }

  async loadRange() {
    const signal = this.begin('range');
    const range = this.range();
    const second = isCompared(this.state) ? this.state.b ?? range : null;
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
    try {
      const [after, before, profile] = await Promise.all([
        this.service.json('functions', query, signal),
        second && this.service.json(
            'functions', queryOf(secondSide(this.state), second), signal),
        second ? this.service.json('difference',
                                   differenceOf(this.state, range), signal) :
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
    const text = (name, side, range, table) => {
      const used = table ?
          `: ${averageText(averageOf(table.sum, table.known * 1000,
                                     table.unit))} ${averageUnit(table)}` : '';
      return `${name}${rangeText(range)}` +
          ` (${lengthText(range.until - range.from)})${namesText(side)}${used}`;
    };
    const {state} = this;
    byName('range-a').textContent =
        text('', state, this.range(), this.tables?.after) +
        this.otherKindsText();
    byName('range-b').textContent = !isCompared(state) ? '' :
        text('compared with ', secondSide(state), state.b ?? this.range(),
             this.tables?.before);
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
    const query = queryOf(bothSides(this.state), snapped(this.window(), step));
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

  // CPU samples alone have slices. Their map shows a time that was chosen in the
  // other one, if that is short enough.
  chooseRange(range, isSecond) {
    this.markSecond(false);
    const goesAlong = this.state.fine && !isSecond &&
        range.until - range.from <= LONGEST_FINE_TIME;
    this.update({
      ...(range.isFine ? {kind: ''} : goesAlong ? {fine: range} : {}),
      [isSecond ? 'b' : 'a']: range,
    });
  }
  switchFine() {
    const {fine, a} = this.state;
    this.update({fine: fine ? null : fineTimeOf(a ?? this.window())});
  }

  async loadSlices() {
    const signal = this.begin('slices');
    const {fine, name} = this.state;
    this.slices.show(null);
    if (!fine) return;
    const query = queryOf(bothSides(this.state), {...fine, isFine: true});
    query.delete('kind');
    query.set('step', 1 / SLICES);
    if (name) query.set('function', `=${name}`);
    try {
      const line = await this.service.json('timeline', query, signal);
      if (signal.aborted) return;
      this.slices.show(line);
      this.slices.mark(this.state.a, this.state.b);
      byName('slices-text').textContent = line.known === 0 ?
          'Nothing is known so exactly: samples keep 20 ms for an hour.' :
          `${lengthText(fine.until - fine.from)} in steps of 20 ms` +
          (name ? ` of ${shortened(name, 120)}` : '');
    } catch (error) {
      if (error.name !== 'AbortError') this.sayTrouble(error);
    }
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
    this.update(readFilters(this.state));
  }

  shift(direction) {
    const {from, until} = this.window();
    const by = Math.max(1, Math.round((until - from) / 2)) * direction;
    const end = Math.min(until + by, this.present());
    this.update({window: {from: end - (until - from), until: end}});
  }
  zoom() {
    const {a} = this.state;
    if (a) this.update({window: snapped(a, 1)});
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
    byName('fine').setAttribute('aria-pressed', state.fine !== null);
    byName('no-b').hidden = !isCompared(state);
    this.sides.show(state, this.window());
    byName('window-text').textContent = rangeText(this.window());
    byName('theme').textContent = darkPage() ? 'Light' : 'Dark';
    fillFilters(state);
    showChips(state, (list, name) => this.update(
        {[list]: state[list].filter((each) => each !== name)}));
  }

  switchTheme() {
    document.documentElement.dataset.theme = darkPage() ? 'light' : 'dark';
    this.flame.send({theme: document.documentElement.dataset.theme});
    this.redraw();
  }
  redraw() {
    this.map.draw();
    this.slices.draw();
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
      'k': () => this.kinds.next(), 'm': () => byName('fine').click(),
    };
    if (!Object.hasOwn(actions, event.key)) return;
    actions[event.key]();
    event.preventDefault();
  }
}

const page = new HistoryPage();
