// SPDX-License-Identifier: Apache-2.0
// Steps of a person on pages of other kinds and on other screens.

import {readFileSync} from 'node:fs';

import {check} from './browser.mjs';
import {box, boxes, hash, row, text, view} from './person.mjs';

async function phone({open, picture}) {
  const page = await open('small');
  await page.setViewportSize({width: 390, height: 844});
  for (const name of ['flame', 'functions', 'callers']) {
    await view(page, name);
    const wide = await page.evaluate(
        () => [...document.querySelectorAll('header *, footer *, #panes')]
            .filter((e) => e.checkVisibility() &&
                           e.getBoundingClientRect().right > innerWidth + 0.5)
            .map((e) => e.id || e.textContent));
    check(wide.length === 0, `${name}: beside the screen: ${wide}`);
    await picture(page, `phone-${name}`);
    if (name === 'functions') {
      check(await page.locator('#functions').isVisible() &&
                !await page.locator('#graph').isVisible(), 'the table alone');
      await row(page, 'Sort').click();
    }
  }
  check((await boxes(page, 'below')).includes('Compare'), 'callees of Sort');
  const small = await page.evaluate(
      () => [...document.querySelectorAll('#bar button, #bar select, summary')]
          .filter((e) => e.checkVisibility() &&
                         e.getBoundingClientRect().height < 24)
          .map((e) => e.textContent));
  check(small.length === 0, 'too small for a finger: ' + small);
  await page.close();
  const tablet = await open('small');
  await tablet.setViewportSize({width: 800, height: 600});
  await picture(tablet, 'tablet');
  await tablet.close();
}

async function downloaded(page, button) {
  if (!await page.locator(button).isVisible()) {
    await page.locator('#save-menu summary').click();
  }
  const [download] = await Promise.all(
      [page.waitForEvent('download'), page.locator(button).click()]);
  return {name: download.suggestedFilename(),
          text: readFileSync(await download.path(), 'utf8')};
}

// Same stacks as ksym-profile's own folded lines; names that would deceive
// stay one frame and no markup.
async function downloads({open, directory}) {
  for (const name of ['small', 'hostile']) {
    const page = await open(name);
    const folded = await downloaded(page, '#save-folded');
    check(folded.name === `${name}.folded`, folded.name);
    const sorted = (lines) => lines.split('\n').sort().join('\n');
    check(sorted(folded.text) ===
              sorted(readFileSync(`${directory}/${name}.folded`, 'utf8')),
          'the folded lines: ' + folded.text);
    const svg = await downloaded(page, '#save-svg');
    const parsed = await page.evaluate((text) => {
      const {documentElement} =
          new DOMParser().parseFromString(text, 'image/svg+xml');
      return {root: documentElement.nodeName,
              names: [...new Set([...documentElement.querySelectorAll('*')]
                  .map((e) => e.nodeName))].sort().join(),
              groups: documentElement.querySelectorAll('g').length};
    }, svg.text);
    check(parsed.root === 'svg' && parsed.names === 'g,rect,text,title' &&
              parsed.groups >= await page.locator('#graph .f').count(),
          JSON.stringify(parsed));
    await page.close();
  }
}

// Names of markup, of other directions and of 60,000 characters are text, and
// at most 200 characters where they are not asked for.
async function hostile({open, picture}) {
  const page = await open('hostile');
  const names = (await page.locator('.rows .name').allTextContents()).join('\n');
  check(names.includes('<img src=x onerror=alert(1)>'), names);
  check(await page.evaluate(() => document.querySelectorAll(
            'main img, main script, #tip img, footer img').length) === 0,
        'no markup came of it');
  check(!/[\u202a-\u202e\u2066-\u2069\u0000-\u0009]/.test(
            await page.evaluate(() => document.body.innerText)),
        'nothing turns the text round');
  const longest = Math.max(...(await page.locator(
      '.f, .name, #path button, #detail b').allTextContents())
      .map((name) => name.length));
  check(longest <= 200, `${longest} characters`);
  await page.locator('#search').fill('x{100}');
  await page.locator('#graph .f.hit').first().hover();
  check((await text(page, 'tip')).length > 900, 'the tooltip has it whole');
  await picture(page, 'hostile');
  await page.close();
}

// 300 frames deep: the bar stays where it is, and a zoom is in sight.
async function deep({open}) {
  const page = await open('deep');
  const scroller = page.locator('#graph');
  const {height} = await scroller.boundingBox();
  check(await scroller.evaluate((e) => e.scrollTop + e.clientHeight >=
            e.scrollHeight - 1), 'it opens at the roots');
  await scroller.evaluate((e) => { e.scrollTop = 0; });
  await box(page, 'f299').waitFor();
  check((await page.locator('#bar').boundingBox()).y >= 0 &&
            await page.locator('#search').isVisible(), 'the bar stays');
  check(await page.locator('#graph .f').count() < 3 * height / 18,
        'rows out of sight are not there');
  await box(page, 'f295').click();
  check((await boxes(page)).length === 6, 'what was left is hidden: ' +
        await boxes(page));
  check(await box(page, 'f299').isVisible(), 'the zoom is in sight');
  await nearestCaller(page);
  await page.close();
}

// The nearest caller is in sight, also where what is said of the function takes
// more lines, and so room from the callers, while they are scrolled to it.
async function nearestCaller(page) {
  await row(page, 'f299').locator('.name').evaluate(async (name) => {
    name.dispatchEvent(new MouseEvent('dblclick', {bubbles: true}));
    document.getElementById('detail').style.height = '100px';
    for (let i = 0; i < 3; ++i) await new Promise(requestAnimationFrame);
  });
  const ends = await page.evaluate(() => {
    const above = document.getElementById('above');
    const nearest = [...above.querySelectorAll('.f')].find(
        (frame) => frame.textContent === 'f298');
    return [nearest, above].map(
        (element) => element.getBoundingClientRect().bottom);
  });
  check(ends[0] <= ends[1], `the nearest caller is in sight: ${ends}`);
}

async function difference({open, picture}) {
  const page = await open('difference');
  check((await text(page, 'legend')).includes('more than'),
        'a difference has its own legend');
  const first = await page.locator('.rows .row').first().innerText();
  check(/^\+90\.00 %\s+0\.00 %\s+90\.00 %\s+Send/.test(first),
        'the table begins: ' + first);
  await box(page, 'Sort').hover();
  check((await text(page, 'tip')).includes('before 60.00 %'), 'the tip has both');
  await picture(page, 'difference');
  await page.locator('#group').selectOption('before');
  check((await boxes(page)).includes('Compare'), 'what is gone is there');
  await page.close();
}

// Several kinds of samples in one page: all of it follows the one that is
// chosen, by mouse, by key and in the address, and what is zoomed stays so.
async function kinds({open, picture}) {
  const page = await open('kinds');
  const tip = async (name) => {
    await box(page, name).hover();
    return text(page, 'tip');
  };
  const first = async () => (await page.locator('.rows .row').first()
      .locator('.name').textContent());
  check((await text(page, 'title')).endsWith(
            '2.1 s of time of threads, wall'), await text(page, 'title'));
  check((await boxes(page)).includes('[blocked: poll]') &&
            (await boxes(page)).includes('Sort'), 'all are in one picture');
  await picture(page, 'kinds');
  await page.locator('#kind').selectOption('blocked');
  check((await text(page, 'title')).endsWith(
            '1.0 s of time of threads, blocked'), await text(page, 'title'));
  check(await page.title() === await text(page, 'title'), 'the window, too');
  check((await text(page, 'facts')).includes(
            'adds up to the time of threads'), await text(page, 'facts'));
  check((await text(page, 'about')).includes('blocked, nanoseconds'),
        'About says it');
  check(await hash(page) === '#kind=blocked', 'the address has it');
  check(!(await boxes(page)).includes('Sort'), 'what does not wait is gone');
  check((await tip('server')).includes('500000000 nanoseconds, 50.00 %'),
        'the tooltip is of that kind');
  check(await first() === '[blocked: poll]', 'the table is: ' + await first());
  check((await page.locator('#only option').allTextContents()).join() ===
            'all,batch (50.00 %),server (50.00 %)', 'commands have its shares');
  await page.locator('#search').fill('poll');
  check(await text(page, 'matched') === 'matched: 1000000000 (100.00 %)',
        'what matches is counted in it');
  await page.locator('#search').fill('');
  await page.keyboard.press('Escape');
  await box(page, 'server').click();
  // From the last one to the first, then on to the next.
  for (const [kind, title] of [['all', 'threads, wall'], ['cpu', 'CPUs, cpu']]) {
    await page.keyboard.press('k');
    check((await text(page, 'title')).endsWith(title), `k: ${title}`);
    check(await page.locator('#kind').inputValue() === kind, 'the field says so');
    check(!(await boxes(page)).includes('batch'), 'the zoom stays');
  }
  check((await text(page, 'title')).includes('1.0 s'),
        'samples have their time: ' + await text(page, 'title'));
  await page.reload();
  await box(page, 'Sort').waitFor();
  check(await page.locator('#kind').inputValue() === 'cpu',
        'a reload keeps the kind');
  await page.locator('#group').selectOption('process');
  await page.locator('#kind').selectOption('runnable');
  check((await boxes(page)).sort().join() ===
            'Work,[runnable: woken],all,server-77',
        'groups have it, too: ' + await boxes(page));
  await page.close();
  const other = await open('blocked');
  check(!await other.locator('#kind').isVisible() &&
            (await text(other, 'title')).endsWith('threads, blocked'),
        'a page of one kind has no choice');
  await other.close();
}

// Parked threads are one frame until a click opens it; the whole, the table and
// what is saved have it closed.
async function parked({open, picture}) {
  const page = await open('parked');
  const functions = async () =>
      (await page.locator('.rows .name').allTextContents()).sort().join();
  const tip = async (name) => {
    await box(page, name).hover();
    return text(page, 'tip');
  };
  const closed = 'Pool,Work,[blocked: poll],[parked]';
  const isClosed = async (when) => {
    const shown = await boxes(page);
    check(shown.filter((name) => name === 'Pool').length === 1,
          `${when}: ${shown}`);
    check(await functions() === closed, `${when}, table: ${await functions()}`);
  };
  await isClosed('as it opens');
  check((await tip('\\[parked\\]')).includes('2000000000 nanoseconds') &&
            (await text(page, 'tip')).includes('a click shows where'),
        'all of their time is there: ' + await text(page, 'tip'));
  check((await downloaded(page, '#save-folded')).text.includes(
            'server;[parked] 2000000000\n'), 'folded stacks have it closed');
  await picture(page, 'parked');
  await box(page, '\\[parked\\]').click();
  check((await boxes(page)).sort().join() ===
            'Pool,[blocked: poll],[parked],server',
        'a click opens it: ' + await boxes(page));
  check((await tip('Pool')).includes('2000000000 nanoseconds'),
        'its frames have their time');
  await picture(page, 'parked-open');
  await box(page, 'Pool').click();
  await box(page, 'Pool').hover();
  await page.keyboard.press('c');
  check((await boxes(page, 'above')).includes('[parked]'),
        'callers are known of what is in it: ' + await boxes(page, 'above'));
  await page.goBack();
  await box(page, 'Pool').waitFor();
  await page.reload();
  await box(page, 'Pool').waitFor();
  check((await boxes(page)).includes('Pool'), 'a reload keeps it open');
  await page.keyboard.press('Escape');
  await isClosed('Escape closes it');
  await page.locator('#show-menu summary').click();
  await page.locator('#parked').check();
  check((await boxes(page)).filter((name) => name === 'Pool').length === 2,
        'the menu opens all: ' + await boxes(page));
  check(await hash(page) === '#parked=1', 'the address has it');
  await page.close();
  const other = await open('open');
  check(!(await boxes(other)).includes('[parked]'), '--parked has none');
  await other.locator('#show-menu summary').click();
  check(!await other.locator('#parked').isVisible(), 'nor what would open it');
  await other.close();
}

// tools: {open(name): a page, picture(page, name), directory: where pages are}.
export function otherPages(tools) {
  return [phone, downloads, hostile, deep, difference, kinds, parked].map((step) => {
    const named = () => step(tools);
    Object.defineProperty(named, 'name', {value: step.name});
    return named;
  });
}
