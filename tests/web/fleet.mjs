// SPDX-License-Identifier: Apache-2.0
// fleet.mjs ADDRESS PICTURES: uses the page of a fleet, of the rows that
// fleet_test.py wrote, as a person would. Saves pictures of it in PICTURES.

import {check, openBrowser, openPage} from './browser.mjs';

const [, , address, pictures] = process.argv;
const url = address.replace(/\/#.*/, '');
const HOSTILE = '<img src=x onerror="document.title=1">';
const complaints = [];
const browser = await openBrowser();
const page = await openPage(
    browser, complaints, {allowed: new RegExp(`^(${url}/|data:|blob:)`)});

const frame = page.frameLocator('#frame-place iframe');
const rows = () => page.locator('#row-names > *').allTextContents();
const hash = () => new URLSearchParams(new URL(page.url()).hash.slice(1));
const shown = async () => {
  await page.waitForFunction(() => !document.body.classList.contains('busy'));
  await frame.locator('.f').first().waitFor();
};
// The functions in the table, and what they used themselves.
const functions = async () => (await page.evaluate(
    () => page.tables.after.rows)).map(({name, self}) => [name, self / 1e9]);
const equal = (value, wanted, what) => check(
    JSON.stringify(value) === JSON.stringify(wanted),
    `${what}: ${JSON.stringify(value)}`);

async function opening() {
  await page.goto(`${address}&last=3600`);
  await shown();
  check(!page.url().includes('token'), 'the token left the address');
  check(await page.title() === 'Fleet', 'it is the fleet’s page');
  equal(await rows(), ['shop', 'mail', HOSTILE], 'rows are services');
  check(await page.locator('#history img').count() === 0, 'and never markup');
  equal(await page.locator('#by option').allTextContents(),
        ['services', 'hosts', 'versions', 'units', 'pods', 'commands'],
        'what rows may be');
  equal(await page.locator('#step option').allTextContents(),
        ['as it fits', '10 s', '1 min'], 'no step is shorter than an interval');
  equal(await functions(), [['compare', 180], ['vfs_write', 75], [HOSTILE, 12],
                            ['main', 0], ['write', 0]], 'the whole time');
  await page.screenshot({path: `${pictures}/fleet.png`, fullPage: true});
}

async function otherRows() {
  for (const [by, wanted] of [['host', ['beta', 'alpha']],
                              ['version', ['2', '[no version]', '1', HOSTILE]],
                              ['comm', ['main', HOSTILE]],
                              ['pod', ['[no pod]']]]) {
    await page.locator('#by').selectOption(by);
    await page.waitForFunction(
        (count) => document.querySelectorAll('#row-names > *').length === count,
        wanted.length);
    equal(await rows(), wanted, `rows by ${by}`);
  }
}

// A click on a row keeps to it, and a chip lets go.
async function filters() {
  await page.locator('#by').selectOption('host');
  await page.locator('#row-names button', {hasText: 'beta'}).click();
  await page.waitForFunction(
      () => document.querySelectorAll('#row-names > *').length === 1);
  await shown();
  check(hash().get('host') === 'beta', 'the address has the host');
  equal((await functions())[0], ['compare', 90], 'of one host');
  await page.locator('#filter-menu summary').click();
  await page.locator('#filter-service').fill(HOSTILE);
  await page.locator('#filter-apply').click();
  await page.waitForFunction(() => page.tables?.after.rows.length === 1);
  equal(await functions(), [[HOSTILE, 6]], 'of a service with markup');
  await page.locator('#chips button', {hasText: 'service'}).click();
  await page.locator('#chips button', {hasText: 'host'}).click();
  await page.waitForFunction(() => page.tables?.after.rows.length === 5);
}

async function marks() {
  const box = await page.locator('#heat').boundingBox();
  const line = await page.evaluate(
      () => ({from: page.line.from, step: page.line.step,
              steps: page.line.known_ms.length,
              first: page.line.known_ms.findIndex((ms) => ms > 0)}));
  const drag = async (from, to) => {
    const place = (step) => box.x + box.width * (step + 0.5) / line.steps;
    await page.mouse.move(place(from), box.y + 23);
    await page.mouse.down();
    await page.mouse.move(place(to), box.y + 23, {steps: 4});
    await page.mouse.up();
  };
  const minutes = (count) => Math.round(60 * count / line.step);
  await drag(line.first + minutes(6), line.first + minutes(8));
  await page.waitForFunction(() => location.hash.includes('a='));
  await shown();
  await page.locator('#compare').click();
  await drag(line.first + minutes(1), line.first + minutes(3));
  await page.waitForFunction(() => page.tables?.before);
  await shown();
  const {after, before} = await page.evaluate(() => page.tables);
  const share = ({rows, known}) =>
      rows.find(({name}) => name === 'compare').self / 1e9 / known;
  check(Math.abs(share(after) / share(before) - 2) < 0.1,
        `compare used twice as much: ${share(after)} and ${share(before)}`);
  await page.screenshot({path: `${pictures}/fleet-compared.png`, fullPage: true});
  await page.locator('#no-b').click();
}

async function kinds() {
  await page.locator('#kinds [data-kind="blocked"]').click();
  await page.waitForFunction(() => page.line?.kind === 'blocked');
  await shown();
  check((await functions())[0][0] === 'main', 'who is blocked is in main');
  await page.locator('#kinds [data-kind="cpu"]').click();
  await page.waitForFunction(() => page.line?.kind === 'cpu');
  await shown();
}

async function curve() {
  await page.locator('#functions .rows .row', {hasText: 'compare'}).first()
      .click();
  await page.waitForFunction(() => page.curve);
  const sum = await page.evaluate(() => page.curve.rows[0].sum / 1e9);
  check(sum === 180, `the curve of a function: ${sum}`);
}

// What a person sees of both sides: rows of the map, sums of a function.
const compared = async (name) => {
  await page.waitForFunction(() => page.tables?.before);
  await shown();
  const {after, before} = await page.evaluate(() => page.tables);
  const of = ({rows}) =>
      (rows.find((row) => row.name === name)?.self ?? 0) / 1e9;
  return [of(after), of(before)];
};
// Begins anew with the whole hour.
async function begin(more = '') {
  await page.goto(`${url}/#last=3600${more}`);
  await page.reload();
  await shown();
}
const rowsAre = (count) => page.waitForFunction(
    (wanted) => document.querySelectorAll('#row-names > *').length === wanted,
    count);

// "This service on host beta against host alpha, at the same time": clicks on the
// names beside the map.
async function hostsByRows() {
  await begin('&by=host&service=mail');
  await rowsAre(2);
  await page.getByRole('button', {name: 'Compare with alpha'}).click();
  equal(await compared('vfs_write'), [75, 30], 'all hosts and alpha');
  await rowsAre(2);
  await page.locator('#row-names button', {hasText: 'beta'}).click();
  await page.waitForFunction(() => location.hash.includes('host=beta'));
  await rowsAre(2);
  equal(await compared('vfs_write'), [45, 30], 'beta and alpha');
  equal(await page.locator('#row-names .first, #row-names .second')
            .allTextContents(), ['beta', 'alpha'], 'rows of both sides');
  equal([hash().get('host'), hash().get('before_host'), hash().get('b')],
        ['beta', 'alpha', null], 'the address has both, of one time');
  const text = await page.locator('#range-b').textContent();
  check(/compared with .*, service mail, host alpha: 0\.\d+ CPUs/.test(text),
        `what it is compared with: ${text}`);
  check((await frame.locator('body').textContent()).includes('host alpha'),
        'the flame graph names the second side');
  await page.screenshot({path: `${pictures}/fleet-hosts.png`, fullPage: true});
  // The address is all that somebody else needs.
  await page.reload();
  equal(await compared('vfs_write'), [45, 30], 'the same after a reload');
  await page.locator('#chips button', {hasText: 'compared with host'}).click();
  await page.waitForFunction(() => page.tables && !page.tables.before);
  check(await page.locator('#no-b').isHidden(), 'nothing is compared');
}

// The same, and sets of hosts, by the menu with the keyboard alone.
async function hostsByKeys() {
  await begin('&by=host');
  await page.locator('#sides-menu summary').focus();
  await page.keyboard.press('Enter');
  await page.locator('#sides-list .side').nth(1).waitFor();
  equal(await page.locator('#sides-by').inputValue(), 'host',
        'the menu has what the rows have');
  const first = page.getByRole('checkbox', {name: 'beta: first'});
  await first.focus();
  await page.keyboard.press('Space');
  await page.waitForFunction(() => location.hash.includes('host=beta'));
  await page.keyboard.press('Tab');
  await page.keyboard.press('Tab');
  await page.keyboard.press('Tab');
  check(await page.evaluate(() => document.activeElement.ariaLabel) ===
        'alpha: second', 'Tab goes from box to box');
  await page.keyboard.press('Space');
  equal(await compared('vfs_write'), [45, 30], 'beta and alpha, by keys');
  await page.getByRole('checkbox', {name: 'alpha: first'}).press('Space');
  await page.waitForFunction(() => page.state.host.length === 2);
  equal(await compared('vfs_write'), [75, 30], 'both and alpha');
  equal(hash().getAll('host'), ['beta', 'alpha'], 'a set in the address');
  await page.screenshot({path: `${pictures}/fleet-sides.png`});
  check(await page.evaluate(() => document.documentElement.scrollWidth) <= 1200,
        'the menu is within the window');
  await page.locator('#sides-search').fill('nobody');
  equal(await page.locator('#sides-list .side span').allTextContents(),
        ['beta', 'alpha'], 'who is chosen is always there');
  await page.keyboard.press('Escape');
  check(await page.locator('#sides-list').isHidden(), 'Escape closes it');
  await page.locator('#no-b').click();
  await page.waitForFunction(() => page.tables && !page.tables.before);
  equal([hash().getAll('host'), hash().get('before_host')],
        [['beta', 'alpha'], null], 'the first side stays');
  // In the heat map: v compares with the row, f keeps to it.
  await page.locator('#heat').focus();
  for (const key of ['ArrowLeft', 'ArrowDown', 'v']) {
    await page.keyboard.press(key);
  }
  equal(await compared('vfs_write'), [75, 30], 'v compares with a row');
  await page.locator('#heat').focus();
  for (const key of ['ArrowLeft', 'ArrowUp', 'f']) await page.keyboard.press(key);
  await page.waitForFunction(() => page.state.host.length === 1);
  equal(await compared('vfs_write'), [45, 30], 'f keeps to a row');
}

// "All hosts, before and after": a moment that is typed, and one in the map.
async function beforeAndAfter() {
  await begin();
  const middle = await page.evaluate(() => {
    const first = page.line.known_ms.findIndex((ms) => ms > 0);
    return page.line.from + first * page.line.step + 300;
  });
  await page.locator('#sides-menu summary').click();
  await page.locator('#split-at').fill(
      await page.evaluate((at) => fieldOfTime(at), middle));
  await page.locator('#split').click();
  const [after, before] = await compared('compare');
  check(after + before === 180 && Math.abs(after - 120) <= 6,
        `after and before: ${after} and ${before}`);
  const window = await page.evaluate(() => page.window());
  equal([hash().get('a'), hash().get('b')],
        [`${middle}-${window.until}`, `${window.from}-${middle}`],
        'both times in the address');
  await page.locator('#sides-menu summary').click();
  await page.locator('#split-at').fill('2001-01-01T00:00:00');
  await page.locator('#split').click();
  check((await page.locator('#trouble').textContent()).includes('not within'),
        'a moment that is not shown');
  await begin();
  await page.locator('#heat').focus();
  for (let i = 0; i < 20; ++i) await page.keyboard.press('ArrowLeft');
  await page.keyboard.press('s');
  await page.waitForFunction(() => page.state.a && page.state.b);
  equal(await page.evaluate(() => page.state.a.from === page.state.b.until),
        true, 's compares what was before with what was after');
}

// A version is a name like another one; its time is another one as well.
async function versions() {
  await begin('&version=2&before_version=1');
  equal(await compared('compare'), [120, 60], 'version 2 and version 1');
}

// On a phone.
async function narrow() {
  await page.setViewportSize({width: 390, height: 844});
  await begin('&by=host&host=beta&before_host=alpha');
  equal(await compared('vfs_write'), [45, 30], 'beta and alpha on a phone');
  await page.locator('#sides-menu summary').click();
  await page.locator('#sides-list .side').nth(1).waitFor();
  const widths = await page.evaluate(() => [
    document.documentElement.scrollWidth,
    ...[...document.querySelectorAll('#sides-menu > div, #sides-list input, ' +
        '#split, #split-at')].map((each) => each.getBoundingClientRect())
        .flatMap(({left, right}) => [-left, right])]);
  check(Math.max(...widths) <= 390, `all of it is within: ${widths}`);
  await page.screenshot({path: `${pictures}/fleet-phone.png`, fullPage: true});
  await page.getByRole('checkbox', {name: 'alpha: second'}).click();
  await page.getByRole('checkbox', {name: 'beta: second'}).click();
  await page.waitForFunction(() => page.state.before_host[0] === 'beta');
  equal(await compared('vfs_write'), [45, 45], 'another second side');
  await page.setViewportSize({width: 1200, height: 800});
}

// Names that are made to deceive are text in the menu and in chips.
async function hostileSides() {
  await begin('&by=service');
  await page.locator('#sides-menu summary').click();
  await page.getByRole('checkbox', {name: `${HOSTILE}: second`}).click();
  equal(await compared(HOSTILE), [12, 12], 'all and one of markup');
  check(await page.locator('#history img, header img').count() === 0,
        'and never markup');
  equal(hash().get('before_service'), HOSTILE, 'in the address');
  await page.locator('#no-b').click();
}

await opening();
await otherRows();
await filters();
await marks();
await kinds();
await curve();
await hostsByRows();
await hostsByKeys();
await beforeAndAfter();
await versions();
await narrow();
await hostileSides();
check(complaints.length === 0, complaints.join('\n'));
check(await page.title() === 'Fleet', 'no name runs');
await browser.close();
console.log('the page of a fleet: 12 parts hold');
