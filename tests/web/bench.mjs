// SPDX-License-Identifier: Apache-2.0
// bench.mjs PAGE PICTURES: how long a page takes to open and to follow each
// thing that a person does, as a person waits for it and as its thread works.
// Prints the median of several runs; judges nothing.

import {openBrowser, openPage} from './browser.mjs';

const [, , file, pictures] = process.argv;
const RUNS = 5;
const browser = await openBrowser();

// Steps are functions in the page: each is done when the next frame is laid
// out.
const STEPS = {
  'zoom': () => {
    const box = document.querySelectorAll('#graph .f')[3];
    const {left, top} = box.getBoundingClientRect();
    box.dispatchEvent(new MouseEvent('click', {
      bubbles: true, clientX: left + 4, clientY: top + 4}));
  },
  'reset the zoom': () => document.querySelector('#reset').click(),
  'search': () => {
    const field = document.querySelector('#search');
    field.value = 'f1.*7';
    field.dispatchEvent(new Event('input'));
  },
  'clear the search': () => {
    const field = document.querySelector('#search');
    field.value = '';
    field.dispatchEvent(new Event('input'));
  },
  'sort by total': () => document.querySelectorAll('.head button')[1].click(),
  'choose a function': () => document.querySelector('.rows .row').click(),
  'callers and callees':
      () => document.querySelector('[data-view="callers"]').click(),
  'bottom-up': () => document.querySelector('[data-view="bottom-up"]').click(),
  'flame graph': () => document.querySelector('[data-view="flame"]').click(),
  'hide the idle': () => document.querySelector('#hide-idle').click(),
  'hide the kernel': () => document.querySelector('#hide-kernel').click(),
  'group by process': () => {
    const field = document.querySelector('#group');
    field.value = 'process';
    field.dispatchEvent(new Event('change'));
  },
  'order by name': () => {
    const field = document.querySelector('#order');
    field.value = 'name';
    field.dispatchEvent(new Event('change'));
  },
  'scroll the table':
      () => { document.querySelector('#functions').scrollTop = 1e6; },
};

const times = new Map();
function note(what, wall, busy) {
  if (!times.has(what)) times.set(what, {wall: [], busy: []});
  times.get(what).wall.push(wall);
  times.get(what).busy.push(busy);
}

for (let run = 0; run < RUNS; ++run) {
  const page = await openPage(browser, []);
  await page.setViewportSize({width: 1400, height: 900});
  const session = await page.context().newCDPSession(page);
  await session.send('Performance.enable', {timeDomain: 'threadTicks'});
  const busy = async () => 1000 * (await session.send('Performance.getMetrics'))
      .metrics.find(({name}) => name === 'TaskDuration').value;
  let before = await busy();
  await page.goto('file://' + file);
  const opened = await page.evaluate(() => new Promise((done) => {
    requestAnimationFrame(() => setTimeout(() => done(performance.now()), 0));
  }));
  note('open', opened, await busy() - before);
  for (const [what, step] of Object.entries(STEPS)) {
    before = await busy();
    const wall = await page.evaluate((text) => {
      const begin = performance.now();
      (0, eval)(text)();
      document.body.getBoundingClientRect();
      return performance.now() - begin;
    }, `(${step})`);
    note(what, wall, await busy() - before);
  }
  if (run === 0) await page.screenshot({path: `${pictures}/large.png`});
  await page.close();
}
await browser.close();

const median = (list) => list.sort((a, b) => a - b)[list.length >> 1].toFixed(0);
console.log('median of ' + RUNS + ', ms'.padEnd(17) + 'waited    CPU');
for (const [what, {wall, busy}] of times) {
  console.log(what.padEnd(24) + median(wall).padStart(7) +
              median(busy).padStart(7));
}
