// SPDX-License-Identifier: Apache-2.0
'use strict';

// Where a browser does not tell when it is idle: soon, and for a short while.
const whenIdle = window.requestIdleCallback?.bind(window) ??
    ((work) => setTimeout(() => work({timeRemaining: () => 10}), 200));

class Page {
  constructor(json) {
    this.data = new FlameData(json);
    this.palette = new Palette(this.data);
    this.details = new Details(this.data, this.palette);
    this.controls = new Controls(this.data, {
      update: (...args) => this.update(...args), redraw: () => this.redraw(),
    });
    this.list = new FunctionList(this.data, byId('functions'), {
      choose: (f) => this.choose(f),
      open: (f) => this.showCallers(this.data.functions[f]),
      sort: (sort) => this.update({sort}, {replace: true}),
    });
    this.makePictures();
    describeCapture(this.data);
    this.listen();
    this.state = null;
    this.go(this.valid(parseState(location.hash)));
  }

  makePictures() {
    const {data, palette} = this;
    const labels = {
      graph: 'Flame graph: arrow keys move, Enter zooms, Escape resets',
      above: 'Callers', below: 'Callees',
    };
    this.pictures = {};
    for (const [id, label] of Object.entries(labels)) {
      const picture = new Picture(byId(id), {data, palette, label});
      this.pictures[id] = picture;
      const {sheet} = picture;
      sheet.addEventListener(
          'pointermove', (event) => this.hover(picture, event));
      sheet.addEventListener('pointerleave', () => this.details.hideTip());
      sheet.addEventListener('click', (event) => {
        // A click that ends a selection of text is none.
        const node = picture.nodeAt(event);
        if (node >= 0 && getSelection().isCollapsed) this.pick(picture, node);
      });
      sheet.addEventListener('keydown', (event) => this.move(picture, event));
      picture.element.addEventListener('scroll', () => this.details.hideTip());
    }
  }

  listen() {
    addEventListener('popstate',
                     () => this.go(this.valid(parseState(location.hash))));
    addEventListener('keydown', (event) => this.key(event));
    const redraw = () => this.redraw();
    new ResizeObserver(redraw).observe(byId('left'));
    addEventListener('resize', redraw);
    addEventListener('beforeprint', redraw);
    matchMedia('print').addEventListener('change', redraw);
    byId('save-folded').addEventListener(
        'click', () => this.save('.folded', 'text/plain', this.folded()));
    byId('save-svg').addEventListener(
        'click', () => this.save('.svg', 'image/svg+xml', this.svg()));
  }

  redraw() {
    for (const picture of Object.values(this.pictures)) picture.draw();
    this.list.table.paint(true);
  }

  // What of a state there is: an address may be of another profile.
  valid(state) {
    const groupings = this.data.groupings();
    if (!groupings.includes(state.group)) state.group = groupings[0];
    if (!this.data.kinds().includes(state.kind)) state.kind = '';
    if (!this.data.commands().some(([name]) => name === state.only)) {
      state.only = '';
    }
    return state;
  }

  // Changes what is shown, as a step that Back undoes unless it is a small
  // one.
  update(changes, {replace = false} = {}) {
    const next = {...this.state, ...changes};
    if (next.kind === this.data.kinds()[0]) next.kind = '';
    const rebuilt = ['group', 'view'].some((key) => key in changes) ||
        (next.view !== 'flame' &&
         ['kind', 'hideKernel', 'hideIdle', 'parked', 'only'].some(
             (key) => key in changes));
    if (rebuilt && !('zoom' in changes)) next.zoom = 0;
    const shown = {...next};
    if (shown.group === this.data.groupings()[0]) shown.group = '';
    const text = formatState(shown);
    if (replace || text !== formatState(parseState(location.hash))) {
      address.write(text, {replace});
    }
    this.go(next);
  }

  go(state) {
    const before = this.state;
    const differs = (...keys) =>
        before === null || keys.some((key) => before[key] !== state[key]);
    this.state = state;
    if (differs('kind')) {
      this.data.choose(state.kind);
      describeKind(this.data);
      this.controls.listCommands();
    }
    const wasOpen = this.isOpen;
    this.isOpen = this.opensParked();
    const reweighed = wasOpen !== this.isOpen ||
        differs('kind', 'group', 'hideKernel', 'hideIdle', 'only');
    if (reweighed) this.weigh();
    const searched = differs('search', 'matchCase') && this.setPattern();
    if (differs('name', 'module') || before === null) this.setChosen();
    this.controls.show(state);
    const redrawn = reweighed || differs('view', 'zoom', 'order', 'roots') ||
        (state.view === 'callers' && differs('name', 'module'));
    this.light(!redrawn);
    if (redrawn) this.drawPictures();
    if (reweighed || searched || differs('sort')) {
      this.list.show(state.sort, this.hit);
    }
    this.list.table.mark(this.chosen);
    if (differs('table')) {
      for (const picture of Object.values(this.pictures)) picture.draw();
    }
    this.showMatched();
  }

  // Whether it is shown where parked threads wait: it was asked for, or the
  // zoom is there.
  opensParked() {
    const {parked, view, group, zoom} = this.state;
    return parked || (view === 'flame' && this.data.isParked(group, zoom));
  }

  weigh() {
    const {group, hideKernel, hideIdle, only} = this.state;
    this.tree = this.data.tree(
        group,
        {kernel: hideKernel, idle: hideIdle, only, parked: this.isOpen});
    this.palette.use(this.tree, group);
    this.bottomUp = new BottomUp(this.tree);
    this.prepare(this.bottomUp);
    this.details.all = this.tree.total[0];
    this.list.weigh(functionTotals(this.tree, this.data), this.tree.total[0],
                    group);
    // New frames came with a grouping.
    if (this.pattern) this.setPattern();
  }

  // Makes a view while nobody waits for it.
  prepare(bottomUp) {
    whenIdle((deadline) => {
      if (bottomUp !== this.bottomUp) return;
      if (!bottomUp.work(deadline.timeRemaining())) this.prepare(bottomUp);
    });
  }

  // False: what is in the field is no regular expression (yet).
  setPattern() {
    const {search, matchCase} = this.state;
    try {
      this.pattern =
          search ? new RegExp(search, matchCase ? '' : 'i') : null;
    } catch {
      byId('search').classList.add('wrong');
      byId('search').setAttribute('aria-invalid', 'true');
      this.isWrong = true;
      return false;
    }
    this.isWrong = false;
    byId('search').classList.remove('wrong');
    byId('search').removeAttribute('aria-invalid');
    this.hit = this.pattern && Uint8Array.from(
        this.data.frames, ({name}) => Number(this.pattern.test(name)));
    return true;
  }

  setChosen() {
    const {name, module} = this.state;
    this.chosen = name === '' ? -1 : this.data.functions.findIndex((frame) => {
      const found = this.data.frames[frame];
      return found.name === name && found.module === module;
    });
  }

  // What is searched for, and the function that was chosen in the table.
  light(anew) {
    let lit = this.hit ?? null;
    if (this.chosen >= 0 && this.state.view !== 'callers') {
      lit = lit ? lit.slice() : new Uint8Array(this.data.frames.length);
      this.data.functionOf.forEach((f, frame) => {
        if (f === this.chosen) lit[frame] = 1;
      });
    }
    for (const picture of Object.values(this.pictures)) {
      picture.light(lit, anew);
    }
  }

  // The tree that the picture shows.
  shownTree() {
    if (this.state.view !== 'bottom-up') return this.tree;
    return this.bottomUp.get();
  }

  drawPictures() {
    const {view, roots, order} = this.state;
    const {graph, above, below} = this.pictures;
    const isPair = view === 'callers';
    byId('graph').hidden = isPair;
    byId('above').hidden = byId('below').hidden = !isPair || this.chosen < 0;
    byId('nothing').hidden = !isPair || this.chosen >= 0;
    byId('nothing').textContent = 'Choose a function in the table, or point ' +
        'at one in the flame graph and press c.';
    for (const picture of [graph, above, below]) picture.tree = null;
    const options = (tree, rootsBelow) => ({
      zoomed: 0, rootsBelow, byWeight: (node) => order === 'weight' ||
          this.data.frames[tree.frame[node + 1]]?.kind === KIND_COMMAND,
    });
    byId('graph').classList.toggle('below', roots === 'below');
    byId('above').classList.add('below');
    if (!isPair) {
      const tree = this.shownTree();
      const {zoom} = this.state;
      const isThere = zoom < tree.parent.length && tree.total[zoom] > 0;
      const zoomed = isThere ? zoom : 0;
      graph.show(tree, {...options(tree, roots === 'below'), zoomed});
      this.showPath(graph, zoomed);
      this.showDetails(graph, zoomed);
    } else if (this.chosen >= 0) {
      const callers = callersOf(this.tree, this.data, this.chosen);
      const callees = calleesOf(this.tree, this.data, this.chosen);
      above.show(callers, {...options(callers, true), rootless: true});
      below.show(callees, options(callees, false));
      this.showPairPath(callees);
      this.showDetails(below, 0);
    } else {
      byId('path').replaceChildren();
      byId('detail').replaceChildren();
    }
  }

  showPath(picture, zoomed) {
    const path = byId('path');
    path.replaceChildren();
    const {tree} = picture;
    for (const node of [0, ...tree.pathTo(zoomed)]) {
      if (node !== 0) path.append(make('i', ' › '));
      const step = make('button', fitName(picture.name(node), 60));
      step.type = 'button';
      step.addEventListener('click', () => this.update({zoom: node}));
      path.append(step);
    }
    this.showHidden();
    path.scrollTop = path.scrollHeight;
  }

  showPairPath(tree) {
    const {name} = this.data.frames[tree.rootFrame];
    const share = percent(tree.total[0] / this.tree.total[0]);
    byId('path').replaceChildren(
        make('i', 'callers above, callees below: '),
        make('b', cutEnd(name, MOST_LETTERS), 'name'),
        make('i', `  ${tree.total[0]} ${this.data.unit}, ${share} of all`));
    this.showHidden();
  }

  // What filters keep from sight is said.
  showHidden() {
    const all = this.data.allSamples(this.state.group);
    const hidden = all - this.tree.total[0];
    if (hidden > 0) {
      byId('path').append(make('i', `  (${hidden} of ${all} ${this.data.unit} ` +
          `hidden, ${percent(hidden / all)})`));
    }
  }

  showMatched() {
    const {tree} = this;
    const sum = this.hit ? tree.matched(this.hit) : 0;
    byId('matched').textContent = this.isWrong ? 'not a regular expression' :
        this.hit ? `matched: ${sum} (${percent(sum / tree.total[0])})` : '';
  }

  showDetails(picture, node) {
    const frame = picture.tree.frameOf(node);
    const buttons = [];
    if (frame >= 0 && this.data.functionOf[frame] >= 0 &&
        !(this.state.view === 'callers' && node === 0)) {
      const button = make('button', 'Callers and callees');
      button.type = 'button';
      button.addEventListener('click', () => this.showCallers(frame));
      buttons.push(button);
    }
    this.details.show(picture.tree, node, buttons);
  }

  hover(picture, event) {
    if (event.pointerType === 'touch' || !picture.tree) return;
    const node = picture.nodeAt(event);
    this.hovered = node < 0 ? null : {picture, node};
    if (node < 0 || event.buttons !== 0) {
      this.details.hideTip();
    } else {
      this.details.showTip(picture.tree, node, event);
    }
  }

  // A click on a frame, or Enter.
  pick(picture, node) {
    this.details.hideTip();
    if (this.state.view === 'callers') {
      const frame = picture.tree.frameOf(node);
      if (this.data.functionOf[frame] >= 0) this.showCallers(frame);
      return;
    }
    if (node !== this.state.zoom) this.update({zoom: node});
    picture.mark(node);
  }

  choose(f) {
    const again = f === this.chosen && this.state.view !== 'callers';
    const {name, module} = this.data.frames[this.data.functions[f]];
    this.update(again ? {name: '', module: ''} : {name, module},
                {replace: this.state.view !== 'callers'});
  }

  showCallers(frame) {
    const {name, module} = this.data.frames[frame];
    document.body.classList.remove('only-table');
    this.update({view: 'callers', name, module, parked: this.isOpen});
    this.list.table.reveal(this.chosen);
  }

  // Arrow keys and Enter in a picture.
  move(picture, event) {
    if (event.ctrlKey || event.metaKey || event.altKey || !picture.tree) return;
    if (event.key === 'Enter') {
      if (picture.focused >= 0) this.pick(picture, picture.focused);
    } else if (event.key.startsWith('Arrow')) {
      const node = picture.neighbour(event.key);
      if (node < 0) return;
      // A frame outside of what is drawn is zoomed to.
      if (!picture.layout.find(node) && this.state.view !== 'callers') {
        this.update({zoom: node});
      }
      picture.reveal(node);
      picture.mark(node);
      this.showDetails(picture, node);
    } else {
      return;
    }
    event.preventDefault();
  }

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (byId('about-box').open) return;
    const inSearch = event.target === byId('search');
    if (event.key === 'Escape') {
      if (inSearch) {
        this.focusPicture();
      } else if (this.state.view === 'callers') {
        this.update({view: 'flame'});
      } else {
        this.update({zoom: 0});
      }
      return;
    }
    if (inSearch || event.target.closest('select, input')) return;
    const actions = {
      '/': () => byId('search').focus(),
      'i': () => this.controls.flip(),
      'k': () => this.controls.nextKind(),
      'd': () => this.controls.switchTheme(),
      'c': () => this.callersOfPointed(),
    };
    if (!Object.hasOwn(actions, event.key)) return;
    actions[event.key]();
    event.preventDefault();
  }

  focusPicture() {
    const {graph, below} = this.pictures;
    (this.state.view === 'callers' ? below : graph).sheet.focus();
  }

  // Shows those of the frame under the pointer, or where the keyboard is.
  callersOfPointed() {
    const focused = Object.values(this.pictures).find(
        (picture) => picture.tree && picture.focused >= 0);
    const at = this.hovered?.picture.tree ? this.hovered :
        focused && {picture: focused, node: focused.focused};
    const frame = at ? at.picture.tree.frameOf(at.node) : -1;
    this.details.hideTip();
    if (this.data.functionOf[frame] >= 0) {
      this.showCallers(frame);
    } else {
      this.update({view: 'callers'});
    }
  }

  folded() {
    const {tree, data} = this;
    if (this.state.view === 'callers') {
      return outermostNodes(tree, data.functionOf, this.chosen)
          .map((node) => foldedText(tree, node, data.frames)).join('');
    }
    const {graph} = this.pictures;
    return foldedText(graph.tree, graph.options.zoomed, data.frames);
  }

  svg() {
    let height = 0;
    const boxes = [];
    const {graph, above, below} = this.pictures;
    for (const picture of [graph, above, below]) {
      if (!picture.tree) continue;
      for (const box of picture.svgBoxes(
               height, (tree, node) => this.details.line(tree, node))) {
        boxes.push(box);
      }
      height += picture.layout.rows.length * ROW_PIXELS;
    }
    const {title, json} = this.data;
    return svgText(boxes, {
      heading: [title, json.loss].filter((text) => text).join(', '),
      width: Math.max(graph.width ?? 0, below.width ?? 0), height,
      namespace: byId('shape').namespaceURI,
    });
  }

  save(ending, type, text) {
    const link = document.createElement('a');
    const url = URL.createObjectURL(new Blob([text], {type}));
    const file = decodeURIComponent(location.pathname.split('/').pop());
    link.href = url;
    link.download = (file.replace(/\.html$/, '') || 'profile') + ending;
    link.click();
    setTimeout(() => URL.revokeObjectURL(url), 1000);
    byId('save-menu').open = false;
  }
}
