// SPDX-License-Identifier: Apache-2.0
'use strict';

const LIVE_MS = 5000;
const LIVE_RANGE_MS = 30000;  // a flame graph that changes is hard to read

// Lets the page follow time. Nothing is asked for while nobody sees the page.
class LiveMode {
  // actions: isBusy(): not now, the next time will do; advance({range}): show
  // what is new, of the chosen time as well.
  constructor(actions) {
    this.actions = actions;
    this.timer = 0;
    this.sinceRange = 0;
    document.addEventListener('visibilitychange', () => this.tick());
  }

  get isOn() {
    return this.timer !== 0;
  }
  set(isOn) {
    if (isOn === this.isOn) return;
    clearInterval(this.timer);
    this.timer = isOn ? setInterval(() => this.tick(), LIVE_MS) : 0;
  }

  tick() {
    if (!this.isOn || document.hidden) return;
    this.sinceRange += LIVE_MS;
    if (this.actions.isBusy()) return;
    const range = this.sinceRange >= LIVE_RANGE_MS;
    if (range) this.sinceRange = 0;
    this.actions.advance({range});
  }
}
