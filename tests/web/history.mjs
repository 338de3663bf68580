// SPDX-License-Identifier: Apache-2.0
// history.mjs URL TOKEN DIRECTORY PICTURES: uses the page of a history that a
// service at URL serves as a person would. Saves downloads in DIRECTORY and
// pictures of the page in PICTURES.

import {check, openBrowser, openPage} from './browser.mjs';

const [, , url, token, directory, pictures] = process.argv;
const complaints = [];
const browser = await openBrowser();
const allowed = new RegExp(`^(${url}/|data:|blob:)`);
const HOSTILE = '<img src=x onerror="document.title=1">';

const picture = (page, name) =>
    page.screenshot({path: `${pictures}/history-${name}.png`, fullPage: true});
const state = async (page) =>
    new URLSearchParams(new URL(page.url()).hash.replace(/^#/, ''));
const frame = (page) => page.frameLocator('#frame-place iframe');
const shown = async (page) => {
  await frame(page).locator('.f').first().waitFor();
  await page.locator('#functions .rows .row').first().waitFor();
  await page.waitForFunction(() => !document.body.classList.contains('busy'));
};
const rows = (page) => page.locator('#row-names > *').allTextContents();

// A place in the heat map's first row: a share of its width.
async function placeOf(page, share) {
  await page.locator('#heat').scrollIntoViewIfNeeded();
  const box = await page.locator('#heat').boundingBox();
  return {x: box.x + box.width * share, y: box.y + 14 + 9};
}

async function drag(page, from, to, {shift = false} = {}) {
  const [a, b] = [await placeOf(page, from), await placeOf(page, to)];
  if (shift) await page.keyboard.down('Shift');
  await page.mouse.move(a.x, a.y);
  await page.mouse.down();
  await page.mouse.move((a.x + b.x) / 2, a.y, {steps: 3});
  await page.mouse.move(b.x, b.y, {steps: 3});
  await page.mouse.up();
  if (shift) await page.keyboard.up('Shift');
}

async function withoutToken() {
  const mine = [];
  const page = await openPage(browser, mine, {allowed});
  await page.goto(`${url}/#last=120`);
  await page.locator('#token-form').waitFor();
  check((await page.locator('#trouble').textContent()).includes('token'),
        'the page asks for the token');
  await page.locator('#token').fill(token);
  await page.locator('#token-form button').click();
  await shown(page);
  check(await page.locator('#trouble').isHidden(), 'and shows data then');
  check(mine.every((text) => text.includes('401')), mine.join('\n'));
  await page.close();
}

async function opening() {
  const page = await openPage(browser, complaints, {allowed});
  await page.goto(`${url}/#last=120&by=comm&token=` +
                  encodeURIComponent(token));
  await shown(page);
  check(!page.url().includes('sesame'), 'the token left the address');
  check((await rows(page)).some((name) => name.startsWith('<img src=x>')),
        'rows are texts');
  check(await page.locator('#history img').count() === 0, 'and never markup');
  check(await page.title() === 'History', 'no name runs');
  check((await page.locator('#said').textContent()).includes('not running'),
        'the hole is said');
  // A file that is a day old, which no test waits for.
  const [fresh, old] = await page.evaluate(() => [0, 7].map((folded) => {
    page.line.folded_stacks += folded;
    page.showMap();
    return document.getElementById('said').textContent;
  }));
  check(!fresh.includes('rare callees') && old.includes('7 stacks'),
        `folded stacks are said: ${old}`);
  await page.evaluate(() => page.line.folded_stacks = 0);
  await picture(page, 'light');
  return page;
}

// Callers and callees, in the frame, are those of the function that was clicked
// first: the curve of a chosen one comes and goes above the table, so that the
// second click hits something else.
async function doubleClicks(page, last) {
  const rows = page.locator('#functions .rows .row');
  const selected = page.locator('#functions .row[aria-selected="true"]');
  const others = {sort: (await state(page)).get('sort'), b: null};
  for (const row of [rows.first(), rows.nth(2),
                     rows.filter({hasText: last}).first()]) {
    // Long names are cut at their end.
    const name = (await row.locator('.name').textContent()).replace(/…$/, '');
    const isName = (text) => text?.startsWith(name);
    for (const isChosen of [false, true]) {
      const where = `${name}, ${isChosen ? 'chosen' : 'not chosen'} before`;
      await frame(page).locator('[data-view="flame"]').click();
      await page.waitForFunction(() => !location.hash.includes('callers'));
      if (await selected.count() > 0) await selected.click();
      if (isChosen) await row.click();
      const {x, y, width, height} = await row.boundingBox();
      await page.mouse.dblclick(x + width / 2, y + height / 2);
      await page.waitForFunction(() => location.hash.includes('callers'));
      await frame(page).locator('#above .f').first().waitFor();
      const after = await state(page);
      const opened = new URLSearchParams(after.get('flame').slice(1));
      check(isName(opened.get('name')),
            `${where}: it opened ${opened.get('name')}`);
      check(isName(after.get('name')) &&
                await page.locator('#series').isVisible(),
            `${where}: the curve is of ${after.get('name')}`);
      for (const [key, value] of Object.entries(others)) {
        check(after.get(key) === value, `${where}: the click changed ${key}`);
      }
    }
  }
}

async function functions(page) {
  // Only the command with such functions.
  await page.locator('#row-names button').filter({hasText: '<img'}).click();
  await page.locator('#chips button').waitFor();
  await shown(page);
  await page.getByRole('button', {name: 'Total'}).click();
  check((await state(page)).get('sort') === 'total', 'another order');
  const names = await page.locator('#functions .name').allTextContents();
  check(names.some((name) => name.includes(HOSTILE)),
        `functions are texts: ${names.slice(0, 20)}`);
  check(await page.locator('#functions img').count() === 0, 'not markup');
  const row = page.locator('#functions .rows .row')
      .filter({hasText: HOSTILE}).first();
  await row.click();
  await page.locator('#series:not([hidden])').waitFor();
  check((await state(page)).get('name').includes('<img'), 'in the address');
  check(await page.locator('#series-name').textContent() ===
            (await state(page)).get('name'), 'the curve has the name');
  await page.waitForFunction(() => {
    const canvas = document.getElementById('curve');
    const {data} = canvas.getContext('2d').getImageData(
        0, 0, canvas.width, canvas.height);
    return data.some((byte) => byte !== 0);
  });
  await doubleClicks(page, HOSTILE);
  await page.locator('#functions').focus();
  await page.keyboard.press('ArrowDown');
  check(!(await state(page)).get('name')?.includes('<img'),
        'the keyboard goes on');
  await frame(page).locator('[data-view="flame"]').click();
  await page.locator('#chips button').click();
  await shown(page);
}

async function ranges(page) {
  // Both runs are in some part of it: drag where something is known.
  const known = await page.evaluate(async (token) => {
    const {from, until} = windowOf(parseAddress(location.hash),
                                   Math.floor(Date.now() / 1000));
    const answer = await fetch(
        `/api/history/timeline?from=${from}&until=${until}&step=1`,
        {headers: {Authorization: `Bearer ${token}`}});
    const {known_ms: list} = await answer.json();
    return [list.findIndex((ms) => ms > 0) / list.length,
            (list.findLastIndex((ms) => ms > 0) + 1) / list.length];
  }, token);
  const at = (share) => known[0] + (known[1] - known[0]) * share;
  await drag(page, at(0.75), at(0.95));
  await page.waitForFunction(() => location.hash.includes('a='));
  await shown(page);
  check(await page.locator('#mark-a').isVisible(), 'the range is marked');
  const text = await page.locator('#range-a').textContent();
  check(/CPUs$/.test(text), `it is said: ${text}`);
  await drag(page, at(0.05), at(0.25), {shift: true});
  await page.waitForFunction(() => location.hash.includes('b='));
  await shown(page);
  check((await page.locator('#functions .head').textContent())
            .startsWith('Change'), 'the table has changes');
  check((await frame(page).locator('#title').textContent())
            .includes('compared with'), 'and so has the frame');
  await picture(page, 'difference');
  const copy = await openPage(browser, complaints, {allowed});
  await copy.goto(page.url() + `&token=${encodeURIComponent(token)}`);
  await shown(copy);
  check(await copy.locator('#range-b').textContent() ===
            await page.locator('#range-b').textContent(),
        'the address has all of it');
  await copy.close();
  await page.goBack();
  await page.waitForFunction(() => !location.hash.includes('b='));
  await shown(page);
  check(await page.locator('#range-b').textContent() === '', 'back goes back');
}

async function keyboard(page) {
  await page.locator('#heat').focus();
  await page.keyboard.press('End');
  const said = await page.locator('#said').textContent();
  check(/to \d\d:\d\d:\d\d; /.test(said), `the place is said: ${said}`);
  for (let i = 0; i < 12; ++i) await page.keyboard.press('ArrowLeft');
  for (let i = 0; i < 4; ++i) await page.keyboard.press('Shift+ArrowLeft');
  const before = (await state(page)).get('a');
  await page.keyboard.press('Enter');
  await page.waitForFunction(
      (before) => !location.hash.includes(`a=${before}`), before);
  const [from, until] = (await state(page)).get('a').split('-').map(Number);
  check(until - from === 5, `five steps: ${until - from}`);
  await shown(page);
  await page.keyboard.press('z');
  check((await state(page)).get('window') === `${from}-${until}`, 'zoomed');
  await page.goBack();
}

async function filters(page) {
  await page.locator('#row-names button').first().click();
  await page.locator('#chips button').waitFor();
  await shown(page);
  check((await rows(page)).length === 1, 'one row is left');
  const name = (await state(page)).get('command');
  check((await page.locator('#chips button').textContent()).includes(name),
        'the filter is said');
  await page.locator('#chips button').click();
  await shown(page);
  check((await rows(page)).length > 1, 'and goes away');
  await page.locator('#by').selectOption('pid');
  await page.waitForFunction(
      () => /^\d+ ./.test(page.line?.rows[0] && page.rows.nameOf(0)));
  await page.locator('#row-names button').first().click();
  await page.locator('#chips button').waitFor();
  await shown(page);
  check(/^\d+$/.test((await state(page)).get('pid')), 'a process by its number');
  check((await rows(page)).length === 1, 'one process is left');
  await page.locator('#chips button').click();
  await page.locator('#by').selectOption('comm');
  await shown(page);
  await page.locator('#filter-menu summary').click();
  await page.locator('#filter-function').fill('no such function');
  await page.locator('#filter-apply').click();
  await page.waitForFunction(
      () => document.querySelectorAll('#row-names > *').length === 0);
  await page.locator('#chips button').click();
  await shown(page);
}

// Pods' names are long, and could be anything if a store was tampered with; no
// service here has any, so its answers get some.
async function pods(page) {
  const names = ['shop/web-0', `${HOSTILE}\u202e/x`,
                 `production/checkout-7d9fd6b5c-${'x'.repeat(80)}2xq`];
  let asked = '';
  await page.route('**/api/history/timeline*', async (route) => {
    const query = new URL(route.request().url()).searchParams;
    if (query.get('by') !== 'pod') return await route.continue();
    asked = query.get('pod') ?? '';
    query.delete('pod');
    query.set('by', 'comm');
    const answer = await route.fetch(
        {url: `${url}/api/history/timeline?${query}`});
    const line = await answer.json();
    line.rows = line.rows.slice(0, 4);
    line.rows.forEach((row, i) => {
      row.name = names[i] ?? '';
      row.rest = false;
    });
    await route.fulfill({response: answer, json: line});
  });
  await page.locator('#by').selectOption('pod');
  await page.waitForFunction(() => page.line?.rows[0]?.name === 'shop/web-0');
  const texts = await rows(page);
  check(texts[0] === 'shop/web-0', `the name: ${texts}`);
  check(texts[1].startsWith('<img'), 'names are texts');
  check(texts[2].startsWith('production/c') && texts[2].endsWith('x2xq') &&
            texts[2].length < 50, `cut in the middle: ${texts[2]}`);
  check(texts[3] === '[no pod]', 'those without one');
  check(await page.locator('#history img').count() === 0, 'no markup');
  await picture(page, 'pods');
  await page.locator('#row-names button').nth(1).click();
  await page.locator('#chips button').waitFor();
  check((await state(page)).get('pod') === names[1], 'the whole name chooses');
  await page.waitForFunction(() => !page.isLoadingMap);
  check(asked === names[1], 'and is asked for');
  check(await page.title() === 'History', 'no name runs');
  await page.locator('#chips button').click();
  await shown(page);
  await page.waitForFunction(() => !page.isLoadingMap);
  await page.unrouteAll({behavior: 'ignoreErrors'});
  await page.locator('#by').selectOption('container');
  await page.waitForFunction(() => page.line?.rows[0]?.name !== 'shop/web-0');
  await page.locator('#by').selectOption('comm');
  await shown(page);
}

// Seconds in steps of 20 ms: the second gesture behind the button.
async function slices(page) {
  const map = page.locator('#slice-map');
  const ready = async () => {
    await page.locator('#slices:not([hidden])').waitFor();
    await page.waitForFunction(() => page.slices.line !== null);
  };
  await page.evaluate(() => {
    const until = Math.floor(Date.now() / 1000) - 2;
    page.update({window: null, a: {from: until - 6, until}, b: null});
  });
  await shown(page);
  await page.locator('#fine').click();
  await ready();
  check(await page.locator('#fine').getAttribute('aria-pressed') === 'true' &&
            (await state(page)).has('fine'), 'the map of slices is asked for');
  check((await page.locator('#slices-text').textContent())
            .startsWith('6 s in steps of 20 ms'), 'it says what it is');
  const drawn = await map.evaluate((canvas) => {
    const {data} = canvas.getContext('2d').getImageData(
        0, 0, canvas.width, canvas.height);
    const seen = new Set();
    for (let i = 0; i < data.length; i += 4) {
      seen.add(`${data[i]},${data[i + 1]},${data[i + 2]}`);
    }
    return seen.size;
  });
  check(drawn > 2, `slices are drawn: ${drawn} colours`);
  await map.scrollIntoViewIfNeeded();
  const {x, y, width} = await map.boundingBox();
  // From the middle of the second column to the middle of the third one.
  await page.mouse.move(x + width * 1.5 / 6, y + 100);
  await page.mouse.down();
  await page.mouse.move(x + width * 2.5 / 6, y + 101, {steps: 3});
  await page.mouse.up();
  await shown(page);
  const {a, fine} = Object.fromEntries(await state(page));
  const [from, until] = a.split('-').map(Number);
  const begin = Number(fine.split('-')[0]);
  check(/^\d+\.\d{3}-\d+\.\d{3}$/.test(a) &&
            Math.abs(from - begin - 1.5) < 0.03 &&
            Math.abs(until - begin - 2.52) < 0.03,
        `a second from its middle on: ${a} of ${fine}`);
  const said = await page.locator('#range-a').textContent();
  check(/:\d\d\.\d{3} to /.test(said) && / CPUs/.test(said),
        `the time is said to the millisecond: ${said}`);
  await picture(page, 'slices');
  await map.focus();
  for (let i = 0; i < 3; ++i) await page.keyboard.press('ArrowLeft');
  await page.keyboard.press('Shift+ArrowLeft');
  check(/\.\d{3} to .*CPUs|nothing is known/.test(
      await page.locator('#said').textContent()), 'the cursor says what is there');
  await page.keyboard.press('b');
  await shown(page);
  check(/^\d+\.\d{3}-/.test((await state(page)).get('b')), 'a second time');
  await page.locator('#no-b').click();
  await shown(page);
  await page.goBack();
  await shown(page);
  await page.goForward();
  await shown(page);
  await page.locator('#slices:not([hidden])').waitFor();
  // A whole time that is chosen above takes the map along.
  await drag(page, 0.90, 0.93);
  await shown(page);
  await ready();
  const after = await state(page);
  check(after.get('fine') === after.get('a'), `it follows: ${after}`);
  await page.keyboard.press('m');
  await page.locator('#slices').waitFor({state: 'hidden'});
  check(!(await state(page)).has('fine'), 'and goes');
}

async function downloads(page) {
  for (const format of ['folded', 'json']) {
    await page.locator('#save-menu summary').click();
    const [download] = await Promise.all([
      page.waitForEvent('download'),
      page.getByRole('button', {name: `As ${format}`}).click(),
    ]);
    await download.saveAs(`${directory}/saved.${format}`);
  }
}

// Threads that wait, beside those that run.
async function kinds(page) {
  const buttons = page.locator('#kinds button');
  check((await buttons.allTextContents()).join() === 'CPU,runnable,blocked',
        'there are three kinds');
  await page.locator('#heat').focus();
  await page.keyboard.press('End');
  let said = '';
  for (let i = 0; i < 120 && !said.includes('threads blocked'); ++i) {
    await page.keyboard.press('ArrowLeft');
    said = await page.locator('#said').textContent();
  }
  check(/CPUs, [\d.]+ threads runnable, [\d.]+ threads blocked/.test(said),
        `lanes are said: ${said}`);
  // A second may have the end of a part alone.
  for (let i = 0; i < 3; ++i) await page.keyboard.press('Shift+ArrowLeft');
  await page.keyboard.press('Enter');
  await shown(page);
  const {a: chosen} = Object.fromEntries(await state(page));
  await page.keyboard.press('Home');
  const before = await page.locator('#said').textContent();
  check(/nothing is known|blocked not sampled/.test(before),
        `so is what was not sampled: ${before}`);
  // Each of three lanes has something drawn in its colour.
  const drawn = await page.evaluate(() => {
    const canvas = document.getElementById('heat');
    const scale = canvas.height / canvas.clientHeight;
    const lanes = lanesOf(page.line);
    const {data} = canvas.getContext('2d').getImageData(
        0, 0, canvas.width, canvas.height);
    return lanes.map((lane) => {
      const row = page.line.rows.findIndex(
          (each) => lane.values(each).some((value) => value > 0));
      const top = (14 + row * rowPixels(lanes) + lane.top + 1) * scale;
      const begin = Math.round(top) * canvas.width * 4;
      const seen = new Set();
      for (let i = begin; i < begin + canvas.width * 4; i += 4) {
        seen.add(`${data[i]},${data[i + 1]},${data[i + 2]}`);
      }
      return seen.size;
    });
  });
  check(drawn.length === 3 && drawn.every((colours) => colours > 1),
        `lanes are drawn: ${drawn}`);
  await page.keyboard.press('k');
  await page.keyboard.press('k');
  await page.waitForFunction(() => location.hash.includes('kind=blocked'));
  await shown(page);
  check(await buttons.nth(2).getAttribute('aria-pressed') === 'true',
        'the kind is pressed');
  check((await state(page)).get('a') === chosen, 'the range stays');
  check(/threads/.test(await page.locator('#range-a').textContent()),
        'sums are of threads');
  await page.waitForFunction(
      () => page.line?.kind === 'blocked');
  await picture(page, 'blocked');
  await buttons.first().click();
  await shown(page);
  check(!page.url().includes('kind='), 'CPU is what there is else');
  // A command that only waits.
  await page.locator('#filter-menu summary').click();
  await page.locator('#filter-command').fill('only-waits');
  await page.locator('#filter-apply').click();
  await untilWaits(page);
  check((await rows(page)).includes('only-waits'), 'it has a row');
  await picture(page, 'only-waits');
  await page.locator('#chips button').click();
  await shown(page);
}

// On a busy machine the service learns of waits that go on some seconds late, so
// the present is asked for again.
async function untilWaits(page) {
  for (let tries = 0; tries < 30; ++tries) {
    await page.evaluate(() => {
      const wanted = new URLSearchParams(location.hash.slice(1));
      const until = Math.floor(Date.now() / 1000);
      wanted.set('a', `${until - 12}-${until}`);
      location.hash = wanted;
    });
    await page.locator('#refresh').click();
    await page.waitForFunction(
        () => !document.body.classList.contains('busy'));
    const text = await page.locator('#range-a').textContent();
    if (/there is .*blocked time/.test(text)) return;
    await page.waitForTimeout(1000);
  }
  check(false, 'what only waits has its time');
}

async function phone() {
  const page = await openPage(
      browser, complaints,
      {allowed, viewport: {width: 390, height: 800}, colorScheme: 'dark'});
  await page.goto(`${url}/#last=120&by=comm&token=` +
                  encodeURIComponent(token));
  await frame(page).locator('.f').first().waitFor();
  const width = await page.evaluate(
      () => document.documentElement.scrollWidth);
  check(width <= 390, `nothing is wider than the phone: ${width}`);
  check(await page.locator('#functions').isHidden(), 'one view at a time');
  await picture(page, 'phone');
  await page.locator('#which [data-view="functions"]').click();
  await page.locator('#functions .rows .row').first().waitFor();
  check(await page.locator('#frame-place').isHidden(), 'the other one');
  await picture(page, 'phone-functions');
  await page.close();
}

async function themes(page) {
  const colour = (of) => of.locator('body').evaluate(
      (body) => getComputedStyle(body).backgroundColor);
  const before = await colour(page);
  await page.locator('#theme').click();
  check(await colour(page) !== before, 'the theme changes');
  await page.waitForTimeout(300);
  check(await colour(frame(page)) === await colour(page), 'the frame\'s too');
  await picture(page, 'dark');
}

// The page goes on with time, keeps what was chosen, and does not grow.
async function live() {
  const page = await openPage(browser, complaints, {allowed});
  // Five seconds are a tenth of one.
  await page.addInitScript(() => {
    const begin = window.setInterval;
    window.setInterval = (action, ms) => begin(action, ms / 50);
  });
  await page.goto(`${url}/#last=120&by=comm&token=` +
                  encodeURIComponent(token));
  await shown(page);
  const window = () => page.locator('#window-text').textContent();
  const passes = async (count) => {
    for (let i = 0; i < count; ++i) {
      await page.waitForResponse(
          (response) => response.url().includes('/timeline'));
    }
  };
  await page.locator('#live').click();
  await shown(page);
  check((await state(page)).get('live') === '1', 'live is in the address');
  const before = await window();
  await page.waitForTimeout(1500);
  await passes(1);
  check(await window() !== before, 'the window goes on');
  await page.locator('#heat').focus();
  await page.keyboard.press('End');
  await page.keyboard.press('Shift+ArrowLeft');
  await page.waitForTimeout(500);
  check(await page.locator('#mark-a').isVisible(), 'nothing disturbs a mark');
  await page.keyboard.press('Enter');
  await shown(page);
  const a = (await state(page)).get('a');
  const session = await page.context().newCDPSession(page);
  await session.send('Performance.enable');
  // The least of three moments: between them answers come and go.
  const sizes = async () => {
    const least = {heap: Infinity, nodes: Infinity, listeners: Infinity};
    const names = {heap: 'JSHeapUsedSize', nodes: 'Nodes',
                   listeners: 'JSEventListeners'};
    for (let i = 0; i < 3; ++i) {
      await passes(1);
      await session.send('HeapProfiler.collectGarbage');
      const {metrics} = await session.send('Performance.getMetrics');
      for (const [key, wanted] of Object.entries(names)) {
        const {value} = metrics.find(({name}) => name === wanted);
        least[key] = Math.min(least[key], value);
      }
    }
    return least;
  };
  await passes(10);
  const first = await sizes();
  await passes(110);
  const last = await sizes();
  check(last.heap < first.heap + 1e6 && last.nodes < first.nodes + 100 &&
            last.listeners < first.listeners + 20,
        `ten minutes: ${JSON.stringify(first)}, ${JSON.stringify(last)}`);
  check((await state(page)).get('a') === a, 'the chosen time stays');
  await page.locator('#live').click();
  await page.waitForTimeout(300);
  let requests = 0;
  page.on('request', () => ++requests);
  await page.waitForTimeout(1000);
  check(requests === 0, `nothing is asked for: ${requests}`);
  await page.close();
}

async function withoutScript() {
  const page = await openPage(browser, complaints,
                              {allowed, javaScriptEnabled: false});
  await page.goto(`${url}/`);
  check(await page.locator('noscript a').count() >= 5 ||
            (await page.content()).includes('/api/history/functions'),
        'there is something without scripts');
  await page.close();
}

await withoutToken();
const page = await opening();
await functions(page);
await ranges(page);
await keyboard(page);
await filters(page);
await pods(page);
await kinds(page);
await slices(page);
await downloads(page);
await themes(page);
await phone();
await live();
await withoutScript();
await browser.close();
check(complaints.length === 0, complaints.join('\n'));
console.log('the page of a history is right');
