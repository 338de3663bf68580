// SPDX-License-Identifier: Apache-2.0
// flamegraph.mjs DIRECTORY PICTURES: uses the pages that web_test.py put into
// DIRECTORY as a person would, and leaves pictures of them in PICTURES.

import {check, openBrowser, openPage} from './browser.mjs';
import {otherPages} from './other_pages.mjs';
import {box, boxes, hash, place, row, text, view} from './person.mjs';

const [, , directory, pictures] = process.argv;
const complaints = [];
const browser = await openBrowser();

const open = async (name, hash = '') => {
  const page = await openPage(browser, complaints);
  await page.goto(`file://${directory}/${name}.html${hash}`);
  await page.locator('.f').first().waitFor();
  return page;
};
const picture = (page, name) =>
    page.screenshot({path: `${pictures}/${name}.png`});
const theme = (page) => page.evaluate(
    () => getComputedStyle(document.body).backgroundColor);

async function opening(page) {
  const top = async (name) => (await place(page, name)).y;
  check(await top('all') > await top('server') &&
            await top('server') > await top('main'),
        'callees stand on their callers');
  check(await text(page, 'direction') === 'Roots on top',
        'the button says what it does');
  await page.locator('#direction').click();
  check(await top('all') < await top('server'), 'roots are on top then');
  check((await hash(page)).includes('roots=top'), 'the address says so');
  check(await text(page, 'direction') === 'Roots below', 'and back');
  await page.locator('#direction').click();
  check(await top('all') > await top('server'), 'roots are below again');
  const {left} = await page.evaluate(() => ({
    left: [...document.querySelectorAll('#graph .f')].filter(
        (frame) => /^(server|batch)$/.test(frame.textContent))
        .sort((a, b) => a.getBoundingClientRect().left -
                        b.getBoundingClientRect().left)
        .map((frame) => frame.textContent).join(),
  }));
  check(left === 'server,batch', 'commands are in order of weight: ' + left);
  check((await text(page, 'title')).startsWith('web1: 100 samples'), 'the host');
  for (const part of ['2023-11-14 22:13:20 UTC', '10.000 s', '99 Hz']) {
    check((await text(page, 'facts')).includes(part), `${part} is in sight`);
  }
  check((await text(page, 'loss')).includes('5 of 105 samples lost'),
        'so is what was lost');
}

async function mouse(page) {
  await box(page, 'Sort').hover();
  const tip = await text(page, 'tip');
  check(tip.includes('60 samples, 60.00 % of all') &&
            tip.includes('0 (0.00 %) in itself'), tip);
  check(tip.includes('/usr/bin/server'), 'the file is shown: ' + tip);
  const at = await place(page, 'Sort');
  const beside = await page.locator('#tip').boundingBox();
  check(Math.abs(beside.x - at.x - at.width / 2) < 60 &&
            Math.abs(beside.y - at.y) < 120, 'it is at the pointer');
  await picture(page, 'light');
  await box(page, 'Sort').click();
  check(!(await boxes(page)).includes('Send'), 'siblings go with the zoom');
  check(!(await boxes(page)).includes('main'), 'so does what is far below');
  check((await text(page, 'path')).includes('main'), 'the path has the callers');
  await picture(page, 'zoomed');
  await page.locator('#path button').first().click();
  check((await boxes(page)).includes('Send'), 'the path leads back');
}

async function history(page) {
  await box(page, 'Send').click();
  check((await hash(page)).includes('zoom='), 'a zoom is in the address');
  await page.reload();
  await box(page, 'Send').waitFor();
  check(!(await boxes(page)).includes('Sort'), 'and there after a reload');
  await page.goBack();
  await box(page, 'Sort').waitFor();
  await page.goForward();
  await box(page, 'Sort').waitFor({state: 'detached'});
  await page.goBack();
  await box(page, 'Sort').waitFor();
  const shown = '#view=callers&name=Work&module=%2Fusr%2Fbin%2Fserver' +
      '&search=send&order=name&group=process&hideKernel=1&sort=total';
  const other = await open('small', shown);
  check(await other.locator('#group').inputValue() === 'process' &&
            await other.locator('#order').inputValue() === 'name' &&
            await other.locator('#search').inputValue() === 'send' &&
            await other.locator('#hide-kernel').isChecked(),
        'controls are as the address says');
  check((await text(other, 'path')).includes('Work'), 'so is the view');
  await other.close();
}

async function group(page) {
  const hover = async (name) => {
    await box(page, name).hover();
    return text(page, 'tip');
  };
  await page.locator('#group').selectOption('process');
  check((await hover('server-77')).includes('90 samples, 90.00 % of all'),
        'a process has its samples');
  check((await hover('batch-99')).includes('10 samples'), 'so has the other');
  await page.locator('#group').selectOption('thread');
  check((await hover('server-77/77')).includes('70 samples'), 'a thread, too');
  check((await hover('server-77/78')).includes('20 samples'), 'and the other');
  check((await hash(page)).includes('group=thread'),
        'the address has the grouping');
  await picture(page, 'threads');
  await page.locator('#group').selectOption('unit');
  check((await hover('web.service')).includes('90 samples'), 'a unit');
  await page.locator('#group').selectOption('container');
  check((await hover('ab[ab]+…?')).includes('10 samples'), 'a container');
  await page.locator('#group').selectOption('command');
  check((await hover('server')).includes('90 samples'), 'and back');
  check(await hash(page) === '', 'nothing is left in the address');
}

async function filter(page) {
  await page.locator('#show-menu summary').click();
  await page.locator('#hide-kernel').check();
  check(!(await boxes(page)).includes('ksys_write'), 'the kernel is hidden');
  check((await text(page, 'path')).includes('hidden') === false,
        'its samples are not');
  await page.locator('#only').selectOption('batch');
  check(!(await boxes(page)).includes('server'), 'one command is left');
  check((await text(page, 'path')).includes('90 of 100 samples hidden'),
        'what is hidden is said: ' + await text(page, 'path'));
  await picture(page, 'filtered');
  await page.locator('#only').selectOption('');
  await page.locator('#hide-kernel').uncheck();
  await page.locator('#hide-idle').check();
  check((await text(page, 'path')).includes('10 of 100 samples hidden'),
        'what waits is hidden');
  await page.keyboard.press('Escape');
  check(!await page.locator('#hide-idle').isVisible(), 'Escape ends the menu');
  await page.goto(`file://${directory}/small.html`);
  await box(page, 'Sort').waitFor();
}

async function table(page) {
  const names = async () => (await page.locator('.rows .name').allTextContents())
      .join();
  check((await names()).startsWith('Compare,ksys_write,epoll_wait'),
        'sorted by what is spent in itself: ' + await names());
  const first = await page.locator('.rows .row').first().innerText();
  check(/60\.00 %\s+60\.00 %/.test(first), 'self and total: ' + first);
  await page.locator('.head button', {hasText: 'Total'}).click();
  check((await names()).startsWith('Work,main,'), 'then by total: ' + await names());
  check(await page.locator('[aria-sort="descending"]').textContent() === 'Total',
        'the column says so');
  await page.locator('.head button', {hasText: 'Function'}).click();
  check((await names()).startsWith('Compare,Send,Sort'), 'then by name');
  await row(page, 'Send').click();
  check((await page.locator('#graph .f.hit').allTextContents()).join() === 'Send',
        'a click highlights');
  check((await hash(page)).includes('name=Send'), 'the address has it');
  await picture(page, 'highlighted');
  await row(page, 'Send').click();
  check(await page.locator('#graph .f.hit').count() === 0, 'another one ends it');
  await page.locator('.head button', {hasText: 'Self'}).click();
}

async function callers(page) {
  await row(page, 'Work').dblclick();
  check((await boxes(page, 'above')).sort().join() === 'batch,main,server',
        'callers: ' + await boxes(page, 'above'));
  const below = await boxes(page, 'below');
  check(below[0] === 'Work' && below.includes('Send') && below.includes('Sort'),
        'callees: ' + below);
  await box(page, 'server', 'above').hover();
  check((await text(page, 'tip')).includes('90 samples, 90.00 % of all'),
        'a caller has what came through it');
  await picture(page, 'callers');
  await box(page, 'Send', 'below').click();
  check((await boxes(page, 'above')).includes('Work'), 'a click goes on');
  await page.goBack();
  await box(page, 'Sort', 'below').waitFor();
  await page.keyboard.press('Escape');
  await box(page, 'Sort').hover();
  await page.keyboard.press('c');
  check((await boxes(page, 'below')).join() === 'Sort,Compare', 'c does the same');
  await view(page, 'bottom-up');
  const all = await boxes(page);
  check(all.includes('Compare') && all.includes('Sort'), 'bottom-up: ' + all);
  await box(page, 'ksys_write').hover();
  check((await text(page, 'tip')).includes('30 samples'), 'has the ends');
  await picture(page, 'bottom-up');
  await view(page, 'flame');
}

// Text can be marked with the mouse, which is no click on the frame.
async function select(page) {
  const {x, y, width, height} = await place(page, 'Work');
  await page.mouse.move(x + 2, y + height / 2);
  await page.mouse.down();
  await page.mouse.move(x + width / 2, y + height / 2, {steps: 4});
  await page.mouse.up();
  check(await page.evaluate(() => getSelection().toString()) === 'Work',
        'the name is marked');
  check((await boxes(page)).includes('main') &&
            await page.locator('#path button').count() === 1,
        'marking does not zoom');
  await page.evaluate(() => getSelection().removeAllRanges());
}

// On paper, whose width the page's script does not learn: all frames are on
// it, with readable text, also of a page that was dark.
async function paper(page) {
  await page.emulateMedia({media: 'print', colorScheme: 'dark'});
  await page.evaluate(() => {
    document.documentElement.dataset.theme = 'dark';
    document.body.style.width = '700px';
  });
  const outside = await page.evaluate(() => {
    const {left, right} =
        document.querySelector('#graph').getBoundingClientRect();
    return [...document.querySelectorAll('#graph .f')].filter((frame) => {
      const at = frame.getBoundingClientRect();
      return at.left < left - 1 || at.right > right + 1;
    }).length;
  });
  check(outside === 0, `${outside} frames are beside the paper`);
  check(await page.evaluate(
            () => getComputedStyle(document.body).color) === 'rgb(27, 29, 34)',
        'paper is never dark');
  check(!await page.locator('#search').isVisible(), 'no controls on paper');
  check(await page.locator('#about').isVisible(), 'the accounting is on it');
  await picture(page, 'paper');
  const pdf = await page.pdf({path: `${pictures}/paper.pdf`, format: 'A4'});
  check(pdf.length > 10000, 'the page prints');
  await page.evaluate(() => {
    delete document.documentElement.dataset.theme;
    document.body.style.width = '';
  });
  await page.emulateMedia({media: 'screen', colorScheme: 'light'});
}

async function search(page) {
  const matched = () => text(page, 'matched');
  await page.locator('#search').fill('^(sort|SEND)$');
  check(await matched() === 'matched: 90 (90.00 %)',
        'case is passed over, what matches is summed up: ' + await matched());
  check(await page.locator('#graph .f.hit').count() === 2, 'two are marked');
  check(await page.locator('.rows .row').count() === 2, 'the table has them');
  check((await hash(page)).includes('search='), 'the address has it');
  await picture(page, 'search');
  await page.locator('#match-case').click();
  check(await matched() === 'matched: 0 (0.00 %)', 'unless told otherwise');
  await page.locator('#match-case').click();
  await page.locator('#search').fill('(');
  check((await matched()).includes('not a'), 'a wrong expression says so');
  await page.locator('#search').fill('');
  check(await matched() === '', 'nothing is searched for');
}

async function keyboard(page) {
  await page.goto(`file://${directory}/small.html`);
  await page.locator('#graph .sheet').focus();
  await page.keyboard.press('/');
  check(await page.evaluate(() => document.activeElement.id) === 'search',
        '/ leads to the search');
  await page.keyboard.press('Escape');
  // From the whole to the command, then to what it called.
  for (let i = 0; i < 3; ++i) await page.keyboard.press('ArrowUp');
  const named = await page.locator('#detail .name').textContent();
  check(named === 'Work', 'arrows move: ' + named);
  const active = await page.evaluate(() => {
    const sheet = document.querySelector('#graph .sheet');
    return document.getElementById(sheet.getAttribute('aria-activedescendant'))
        .getAttribute('aria-label');
  });
  check(active === 'Work, 90.00 %', 'and say where: ' + active);
  await page.keyboard.press('Enter');
  check((await text(page, 'path')).includes(named), 'Enter zooms');
  await page.keyboard.press('Escape');
  check((await boxes(page)).includes('main'), 'Escape goes back');
  await page.locator('#functions').focus();
  await page.keyboard.press('ArrowDown');
  await page.keyboard.press('ArrowDown');
  check(await page.locator('[aria-selected="true"] .name').textContent() ===
            'ksys_write', 'arrows move in the table');
  await page.keyboard.press('Enter');
  check((await boxes(page, 'below')).join() === 'ksys_write',
        'Enter shows callers and callees');
  await page.keyboard.press('Escape');
  await page.goto(`file://${directory}/small.html`);
}

async function dark(page) {
  const before = await theme(page);
  check(await text(page, 'theme') === 'Dark', 'the button says what it does');
  await page.keyboard.press('d');
  check(await theme(page) !== before, 'd makes it dark');
  check(await text(page, 'theme') === 'Light', 'and what it does next');
  await picture(page, 'dark');
}

async function systemDark(page) {
  const before = await theme(page);
  await page.emulateMedia({colorScheme: 'dark'});
  check(await theme(page) !== before, 'the system says dark');
  await page.emulateMedia({colorScheme: 'light'});
}

// Texts whose colour differs too little from what is behind them (WCAG AA).
function faintTexts() {
  const canvas = document.createElement('canvas').getContext(
      '2d', {willReadFrequently: true});
  const rgb = (colour) => {
    canvas.clearRect(0, 0, 1, 1);
    canvas.fillStyle = colour;
    canvas.fillRect(0, 0, 1, 1);
    return [...canvas.getImageData(0, 0, 1, 1).data];
  };
  const light = ([r, g, b]) => [r, g, b].map((c) => c / 255)
      .map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4))
      .reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
  const behind = (element) => {
    for (let e = element; e; e = e.parentElement) {
      const colour = rgb(getComputedStyle(e).backgroundColor);
      if (colour[3] === 255) return colour;
    }
    return [255, 255, 255];
  };
  const faint = [];
  for (const element of document.querySelectorAll('body *')) {
    const own = [...element.childNodes].some(
        (node) => node.nodeType === 3 && node.textContent.trim() !== '');
    if (!own || !element.checkVisibility()) continue;
    const [a, b] = [light(rgb(getComputedStyle(element).color)),
                    light(behind(element))];
    const contrast = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (contrast < 4.5) {
      faint.push(`${element.tagName} ${element.textContent}: ${contrast}`);
    }
  }
  return faint;
}

async function accessible(page) {
  for (const scheme of ['light', 'dark']) {
    await page.emulateMedia({colorScheme: scheme});
    for (const search of ['', 'Sort']) {
      await page.locator('#search').fill(search);
      const faint = await page.evaluate(faintTexts);
      check(faint.length === 0, `${scheme}, too faint: ${faint.join('; ')}`);
    }
    await page.locator('#search').fill('');
    await page.keyboard.press('Escape');
  }
  await page.emulateMedia({colorScheme: 'light'});
  const nameless = await page.evaluate(
      () => [...document.querySelectorAll('button, input, select, summary')]
          .filter((e) => !e.textContent.trim() && !e.ariaLabel &&
                         !e.labels?.[0]?.textContent.trim())
          .map((e) => e.id));
  check(nameless.length === 0, 'controls without a name: ' + nameless);
  await page.locator('#search').fill('Sort');
  for (const role of ['tree', 'treeitem', 'grid', 'columnheader', 'gridcell',
                      'status', 'toolbar']) {
    check(await page.getByRole(role).count() > 0, `there is a ${role}`);
  }
  await page.locator('#search').fill('');
  await page.keyboard.press('Escape');
}

const failures = [];
async function run(steps, page) {
  for (const step of steps) {
    try {
      await step(page);
    } catch (error) {
      failures.push(`${step.name}: ${error.message}`);
      if (page) await picture(page, `failed-${step.name}`);
    }
  }
}

const page = await open('small');
await run([systemDark, opening, mouse, history, group, filter, table, callers,
           select, paper, search, keyboard, accessible, dark], page);
await page.close();
await run(otherPages({open, picture, directory}));
await browser.close();
failures.push(...complaints);
check(failures.length === 0, failures.join('\n') || 'no complaints');
