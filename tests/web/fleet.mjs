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
  equal(await functions(), [['compare', 180], ['vfs_write', 60], [HOSTILE, 12],
                            ['main', 0], ['write', 0]], 'the whole time');
  await page.screenshot({path: `${pictures}/fleet.png`, fullPage: true});
}

async function otherRows() {
  for (const [by, wanted] of [['host', ['alpha', 'beta']],
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

await opening();
await otherRows();
await filters();
await marks();
await kinds();
await curve();
check(complaints.length === 0, complaints.join('\n'));
check(await page.title() === 'Fleet', 'no name runs');
await browser.close();
console.log('the page of a fleet: 6 parts hold');
