// SPDX-License-Identifier: Apache-2.0
'use strict';

// The flame graph: another page in a frame, made anew for each profile.
class FlameFrame {
  // keep(state): what the frame's address became.
  constructor(keep) {
    this.place = byName('frame-place');
    this.profile = null;
    this.isLoading = false;
    addEventListener('message', ({source, origin, data}) => {
      if (origin !== location.origin || !this.frame ||
          source !== this.frame.contentWindow) {
        return;
      }
      if (data.ready) {
        const {theme} = document.documentElement.dataset;
        if (theme) this.send({theme});
        this.send({profile: this.profile});
      }
      if (typeof data.state === 'string') keep(data.state);
      if (data.theme) {
        document.documentElement.dataset.theme = data.theme;
        dispatchEvent(new Event('resize'));
      }
    });
  }

  show(profile, state) {
    this.profile = profile;
    this.frame?.remove();
    this.frame = document.createElement('iframe');
    this.frame.title = 'Flame graph';
    this.frame.src = `/flame${state}`;
    this.isLoading = true;
    this.frame.addEventListener('load', () => this.isLoading = false);
    this.place.append(this.frame);
  }
  clear() {
    this.frame?.remove();
    this.frame = null;
    this.isLoading = false;
  }
  send(message) {
    this.frame?.contentWindow.postMessage(message, location.origin);
  }
}
