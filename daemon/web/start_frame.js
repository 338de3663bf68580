// SPDX-License-Identifier: Apache-2.0
'use strict';

// The page of a flame graph as a frame of the history's page, which gives it a
// profile and keeps its state.
{
  let page = null;
  const tell = (message) => parent.postMessage(message, location.origin);
  const tellState = () => tell({state: location.hash});
  const {write} = address;
  address.write = (text, options) => {
    // Back and forward are the history's own: it has the ranges of time.
    write(text, {...options, replace: true});
    tellState();
  };
  addEventListener('message', ({source, origin, data}) => {
    if (source !== parent || origin !== location.origin) return;
    if (data.theme) {
      document.documentElement.dataset.theme = data.theme;
      page?.redraw();
    }
    if (data.profile && page === null) {
      OPENING_STATE.table = false;
      page = new Page(data.profile);
    }
    if (data.callers) page?.update({view: 'callers', ...data.callers});
  });
  new MutationObserver(
      () => tell({theme: document.documentElement.dataset.theme}))
      .observe(document.documentElement, {attributeFilter: ['data-theme']});
  tell({ready: true});
}
