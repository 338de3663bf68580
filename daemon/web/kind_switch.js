// SPDX-License-Identifier: Apache-2.0
'use strict';

// The buttons that choose the kind of samples of what is below the heat map.
class KindSwitch {
  // choose(kind): '' for the first kind, which is what an address without a
  // kind shows.
  constructor(choose) {
    this.choose = (kind) => choose(WAIT_KINDS.includes(kind) ? kind : '');
    this.place = byName('kinds');
    this.kinds = [];
    this.chosen = '';
  }

  // line: the time line, or null where there is none; kind: as the address has
  // it. Nothing is to be chosen where there is one kind.
  show(line, kind) {
    const kinds = line ? kindsOf(line) : kind === '' ? [] : ['cpu', kind];
    if (kind !== '' && !kinds.includes(kind)) kinds.push(kind);
    this.kinds = kinds;
    this.chosen = kind || line?.kind;
    const {place} = this;
    place.hidden = kinds.length < 2 && kind === '';
    const hadFocus = place.contains(document.activeElement);
    place.replaceChildren(...kinds.map((each) => this.makeButton(each)));
    if (hadFocus) place.querySelector('[aria-pressed="true"]')?.focus();
  }

  makeButton(kind) {
    const button = element('button', kindText(kind));
    button.type = 'button';
    button.dataset.kind = kind;
    button.title = 'Show this kind of samples (k: the next one)';
    button.setAttribute('aria-pressed', kind === this.chosen);
    button.style.setProperty('--lane', laneColour(kind, 0.5, darkPage()));
    button.addEventListener('click', () => this.choose(kind));
    return button;
  }

  next() {
    const {kinds, chosen} = this;
    if (kinds.length < 2) return;
    this.choose(kinds[(kinds.indexOf(chosen) + 1) % kinds.length]);
  }
}
