'use strict';

const byId = (id) => document.getElementById(id);

function percent(share) {
  return `${(100 * (share || 0)).toFixed(2)} %`;
}

// A new element with text; text never becomes markup.
function make(tag, text) {
  const element = document.createElement(tag);
  element.textContent = text;
  return element;
}

class Page {
  constructor(json) {
    this.view = new FlameView(byId('graph'), new FlameData(json));
    this.describe(json);
    this.fillControls();
    this.listen();
    this.restore();
    this.drawAll();
  }

  // What was looked for is in the address, so that it can be sent along.
  restore() {
    const state = new URLSearchParams(location.hash.slice(1));
    const group = state.get('group');
    if (this.view.data.groupings().includes(group)) {
      byId('group').value = group;
      this.view.setGrouping(group);
    }
    byId('search').value = state.get('search') ?? '';
    this.setPattern();
  }

  remember() {
    const state = new URLSearchParams();
    if (this.view.pattern) state.set('search', byId('search').value);
    if (this.view.grouping !== this.view.data.groupings()[0]) {
      state.set('group', this.view.grouping);
    }
    history.replaceState(null, '', `#${state}`);
  }

  describe(json) {
    document.title = json.title;
    byId('title').textContent = json.title;
    byId('loss').textContent = json.loss;
    for (const [key, value] of json.about) {
      const row = document.createElement('tr');
      row.append(make('td', key), make('td', value));
      byId('about').append(row);
    }
    if (json.before) {
      byId('grouping').textContent = 'Widths of ';
      this.explain(changeColour(1, 1), 'more than before');
      this.explain(changeColour(0, 1), 'the same');
      this.explain(changeColour(-1, 1), 'less than before');
      this.listChanges(json.measure);
    } else {
      for (const {hue, saturation, light, name} of KINDS) {
        this.explain(`hsl(${hue} ${saturation}% ${light}%)`, name);
      }
    }
  }

  // Of a difference: as a table, the largest first.
  listChanges(measure) {
    const most = 20;
    const row = (...texts) => {
      const line = document.createElement('tr');
      line.append(...texts.map((text) => make('td', text)));
      byId('changed').append(line);
    };
    row('change', 'before', 'after', 'function');
    for (const {name, before, after} of
         this.view.data.largestChanges(most)) {
      row(formatChange(before, after, measure), formatUsage(before, measure),
          formatUsage(after, measure), name);
    }
    byId('changes').querySelector('summary').textContent =
        'Largest changes of own time' +
        (measure.unit ? `, in ${measure.unit}` : '');
    byId('changes').hidden = false;
  }

  // One colour of the legend.
  explain(colour, name) {
    const entry = document.createElement('span');
    const sample = document.createElement('i');
    sample.style.background = colour;
    entry.append(sample, name);
    byId('legend').append(entry);
  }

  fillControls() {
    for (const grouping of this.view.data.groupings()) {
      byId('group').append(make('option', grouping));
    }
  }

  listen() {
    const graph = byId('graph');
    const nodeOf = (event) => {
      const box = event.target.closest('.f');
      return box ? Number(box.dataset.node) : -1;
    };
    graph.addEventListener('mouseover', (event) => {
      const node = nodeOf(event);
      if (node >= 0) this.showDetails(node);
    });
    graph.addEventListener('click', (event) => {
      // A click that ends a selection of text is none.
      const node = nodeOf(event);
      if (node >= 0 && getSelection().isCollapsed) this.zoom(node);
    });
    byId('search').addEventListener('input', () => this.search());
    byId('group').addEventListener('change', (event) => {
      this.view.setGrouping(event.target.value);
      this.drawAll();
      this.remember();
    });
    byId('direction').addEventListener('click', () => this.flip());
    byId('reset').addEventListener('click', () => this.zoom(0));
    byId('theme').addEventListener('click', () => this.switchTheme());
    addEventListener('resize', () => this.view.draw());
    addEventListener('keydown', (event) => this.key(event));
  }

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const inSearch = event.target === byId('search');
    if (event.key === 'Escape') {
      if (inSearch) {
        byId('graph').focus();
      } else {
        this.zoom(0);
      }
      return;
    }
    if (inSearch || event.target.closest('select, button, summary')) return;
    if (event.key === '/') {
      byId('search').focus();
    } else if (event.key === 'i') {
      this.flip();
    } else if (event.key === 'd') {
      this.switchTheme();
    } else if (event.key === 'Enter') {
      if (this.view.focused >= 0) this.zoom(this.view.focused);
    } else if (event.key.startsWith('Arrow')) {
      this.focus(this.view.neighbour(event.key));
    } else {
      return;
    }
    event.preventDefault();
  }

  focus(node) {
    if (node < 0) return;
    // A frame outside of what is drawn is zoomed to.
    if (!this.view.shown.has(node)) this.zoom(node);
    this.view.mark(node);
    this.view.shown.get(node)?.scrollIntoView({block: 'nearest'});
    this.showDetails(node);
  }

  zoom(node) {
    this.view.zoom(node);
    this.view.mark(node);
    this.showPath();
    this.showDetails(node);
  }

  // False: what is in the field is no regular expression (yet).
  setPattern() {
    const text = byId('search').value;
    let pattern = null;
    try {
      pattern = text ? new RegExp(text) : null;
    } catch {
      byId('search').classList.add('wrong');
      byId('matched').textContent = 'not a regular expression';
      return false;
    }
    byId('search').classList.remove('wrong');
    this.view.search(pattern);
    return true;
  }

  search() {
    if (!this.setPattern()) return;
    this.view.draw();
    this.showMatched();
    this.remember();
  }

  showMatched() {
    const {view} = this;
    const sum = view.hit ? view.tree.matched(view.hit) : 0;
    byId('matched').textContent = view.hit ?
        `matched: ${sum} (${percent(sum / view.tree.total[0])})` : '';
  }

  showPath() {
    const path = byId('path');
    path.replaceChildren();
    const {view} = this;
    for (const node of [0, ...view.tree.pathTo(view.zoomed)]) {
      if (node !== 0) path.append(' › ');
      const step = make('button', view.name(node));
      step.type = 'button';
      step.addEventListener('click', () => this.zoom(node));
      path.append(step);
    }
  }

  showDetails(node) {
    const {name, samples, ofAll, ofParent, module, kind, place, change} =
        this.view.details(node);
    const about = document.createElement('span');
    about.textContent =
        [kind, module, place].filter((text) => text !== '').join(', ');
    const line = make('div', `${samples} samples, ${percent(ofAll)} of all` +
        (node === 0 ? '' : `, ${percent(ofParent)} of the caller`) +
        (change && `; ${change}`) + '  ');
    line.append(about);
    byId('detail').replaceChildren(make('b', name), line);
  }

  flip() {
    this.view.rootsBelow = !this.view.rootsBelow;
    this.drawAll();
  }

  switchTheme() {
    const root = document.documentElement;
    const isDark = root.dataset.theme ? root.dataset.theme === 'dark' :
        matchMedia('(prefers-color-scheme: dark)').matches;
    root.dataset.theme = isDark ? 'light' : 'dark';
  }

  drawAll() {
    byId('direction').textContent =
        this.view.rootsBelow ? 'Icicle' : 'Flame';
    this.view.draw();
    this.showPath();
    this.showMatched();
    this.showDetails(this.view.zoomed);
  }
}

new Page(JSON.parse(byId('data').textContent));
