// SPDX-License-Identifier: Apache-2.0
'use strict';

// Asks the service. It answers two queries at once, and so do we ask no more.
class Service {
  constructor() {
    this.running = 0;
    this.waiting = [];
    this.takeToken();
  }

  // A token that came behind '#' goes into the session's storage, so that no
  // address has it that somebody may copy.
  takeToken() {
    const parameters = new URLSearchParams(location.hash.replace(/^#/, ''));
    const token = parameters.get('token');
    if (token === null) return;
    sessionStorage.setItem('token', token);
    parameters.delete('token');
    history.replaceState(null, '', `#${parameters}`);
  }
  setToken(token) {
    sessionStorage.setItem('token', token);
  }

  // The answer; fails with an error for people, whose status is the answer's.
  async ask(path, query, signal) {
    await this.turn(signal);
    try {
      return await this.fetch(path, query, signal);
    } finally {
      --this.running;
      this.next();
    }
  }
  async json(path, query, signal) {
    return (await this.ask(path, query, signal)).json();
  }

  async fetch(path, query, signal) {
    const token = sessionStorage.getItem('token');
    const headers = token ? {Authorization: `Bearer ${token}`} : {};
    let response;
    try {
      response = await fetch(`/api/history/${path}?${query}`,
                             {headers, signal, redirect: 'error'});
    } catch (error) {
      if (error.name === 'AbortError') throw error;
      throw new Error('the service does not answer');
    }
    if (response.ok) return response;
    const text = (await response.text()).trim();
    throw Object.assign(new Error(text || `status ${response.status}`),
                        {status: response.status});
  }

  // Waits for a place; one that is given up leaves the queue.
  turn(signal) {
    return new Promise((resolve, reject) => {
      const entry = {resolve, reject, signal};
      signal?.addEventListener('abort', () => {
        const at = this.waiting.indexOf(entry);
        if (at < 0) return;
        this.waiting.splice(at, 1);
        reject(signal.reason);
      });
      if (signal?.aborted) {
        reject(signal.reason);
        return;
      }
      this.waiting.push(entry);
      this.next();
    });
  }
  next() {
    while (this.running < 2 && this.waiting.length > 0) {
      ++this.running;
      this.waiting.shift().resolve();
    }
  }
}
