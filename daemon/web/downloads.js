// SPDX-License-Identifier: Apache-2.0
'use strict';

const FORMATS = [['folded', 'folded'], ['pprof', 'pb.gz'], ['json', 'json'],
                 ['flamegraph', 'html'], ['svg', 'svg'], ['text', 'txt'],
                 ['speedscope', 'speedscope.json'],
                 ['perf-script', 'perf'], ['otlp', 'otlp']];

// The menu that saves the shown time in the formats of other programs.
class Downloads {
  // actions: range(): the time; query(range): what is asked for; begin(): the
  // signal that ends the request; fail(error).
  constructor(service, actions) {
    this.service = service;
    this.actions = actions;
    for (const [format, ending] of FORMATS) {
      const button = element('button', `As ${format}`);
      button.type = 'button';
      button.addEventListener('click', () => this.download(format, ending));
      byName('downloads').append(button);
    }
  }

  async download(format, ending) {
    byName('save-menu').open = false;
    const range = this.actions.range();
    const query = this.actions.query(range);
    query.set('format', format);
    try {
      const response =
          await this.service.ask('profile', query, this.actions.begin());
      const link = document.createElement('a');
      const url = URL.createObjectURL(await response.blob());
      link.href = url;
      link.download = `history-${range.from}-${range.until}.${ending}`;
      link.click();
      setTimeout(() => URL.revokeObjectURL(url), 1000);
    } catch (error) {
      if (error.name !== 'AbortError') this.actions.fail(error);
    }
  }
}
