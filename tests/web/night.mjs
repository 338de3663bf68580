// SPDX-License-Identifier: Apache-2.0
// night.mjs ADDRESS STORY PICTURES: finds in the page at ADDRESS, that of
// `ksym-profile ui`, what docs/night.md finds, as it says it there, and makes
// its pictures. STORY is what happened, as JSON: unit, culprit, its callers from
// the nearest one on, and begin and end of the spike in seconds since 1970.

import {writeFileSync} from 'node:fs';

import {check, openBrowser, openPage} from './browser.mjs';
import {boxes} from './person.mjs';
import {smallPng} from './small_png.mjs';

const [, , address, storyText, pictures] = process.argv;
const story = JSON.parse(storyText);
const [base] = address.split('/#token=');
// So wide that the flame graph beside the table has its bar in one row.
const WIDTH = 1240;
const complaints = [];
const browser = await openBrowser();
// Where it is night now.
const hours = 2 - new Date().getUTCHours();
const east = hours < -12 ? hours + 24 : hours;
const page = await openPage(browser, complaints, {
  allowed: new RegExp(`^(${base}/|data:|blob:)`),
  viewport: {width: WIDTH, height: 780},
  timezoneId: `Etc/GMT${east < 0 ? '+' : '-'}${Math.abs(east)}`,
});
const frame = page.frameLocator('#frame-place iframe');
const functions = page.locator('#functions .rows .row');

// A picture of all that is seen, or of what is above an element.
async function picture(name, {above} = {}) {
  await page.evaluate(() => scrollTo(0, 0));
  const box = above && await page.locator(above).boundingBox();
  const png = await page.screenshot(
      above ? {clip: {x: 0, y: 0, width: WIDTH, height: Math.ceil(box.y)}} :
              {});
  writeFileSync(`${pictures}/night-${name}.png`, smallPng(png));
}

async function shown() {
  await page.waitForFunction(() => !page.isLoadingMap &&
      !document.body.classList.contains('busy'));
  await frame.locator('.f').first().waitFor();
  await functions.first().waitFor();
}

// What is seen of the unit's row: where it is, and how dark it is at each pixel
// from the left, where it is no hatching.
const seen = () => page.evaluate((unit) => {
  const row = [...document.querySelectorAll('#row-names > *')].find(
      (name) => name.textContent === unit).getBoundingClientRect();
  const canvas = document.getElementById('heat');
  const heat = canvas.getBoundingClientRect();
  const y = row.y + row.height / 2;
  const {data} = canvas.getContext('2d').getImageData(
      0, Math.round(y - heat.y), canvas.width, 1);
  const darkness = Array.from({length: canvas.width}, (_, x) => {
    const parts = data.slice(4 * x, 4 * x + 3);
    const [least, most] = [Math.min(...parts), Math.max(...parts)];
    return most - least < 24 ? 0 : 255 - (least + most) / 2;
  });
  return {left: heat.x, y, darkness};
}, story.unit);

async function drag({left, y}, from, to) {
  await page.mouse.move(left + from, y);
  await page.mouse.down();
  await page.mouse.move(left + to, y, {steps: 5});
  await page.mouse.up();
}

const chosen = () => page.evaluate(
    () => new URLSearchParams(location.hash.slice(1)).get('a'));

// The first gesture: over the surroundings of the darkest place, to see single
// seconds.
async function comeCloser() {
  const row = await seen();
  const spot = row.darkness.indexOf(Math.max(...row.darkness));
  const reach = Math.round(row.darkness.length * story.calm / 900);
  await drag(row, spot - reach, spot + reach);
  await page.waitForFunction(() => location.hash.includes('a='));
  await shown();
  await page.locator('#closer').click();
  await page.waitForFunction(() => location.hash.includes('window='));
  await shown();
}

// The second one: over what is dark.
async function markSpot() {
  const before = await chosen();
  const row = await seen();
  const most = Math.max(...row.darkness);
  const spot = row.darkness.indexOf(most);
  const others = row.darkness.filter((each) => each > 0).sort((a, b) => a - b);
  const calm = others[Math.floor(others.length / 2)];
  check(most > calm + 20, `the spot is seen: ${most}, else ${calm}`);
  const isDark = (x) => row.darkness[x] > (most + calm) / 2;
  let [from, to] = [spot, spot];
  while (isDark(from - 1)) --from;
  while (isDark(to + 1)) ++to;
  await drag(row, from + 1, to - 1);
  await page.waitForFunction(
      (before) => !location.hash.includes(`a=${before}`), before);
  await shown();
  const [begin, end] = (await chosen()).split('-').map(Number);
  check(begin < story.end && end > story.begin &&
            end - begin <= story.end - story.begin + 2,
        `${begin} to ${end} is the spike: ${storyText}`);
}

async function readFunctions() {
  await page.getByRole('button', {name: story.unit, exact: true}).click();
  await page.locator('#chips button').waitFor();
  await shown();
  const names = await page.locator('#functions .name').allTextContents();
  check(names[0] === story.culprit, `the table: ${names.slice(0, 10)}`);
  const share = parseFloat(await functions.first().textContent());
  check(share > 50, `most of the time is its own: ${share} %`);
  await functions.first().click();
  await page.locator('#series:not([hidden])').waitFor();
  // The path from the unit's command to it is in the flame graph.
  const inGraph = await boxes(frame);
  for (const name of [story.culprit, ...story.callers]) {
    check(inGraph.includes(name), `${name} is in ${inGraph}`);
  }
}

async function readCallers() {
  await functions.first().dblclick();
  await frame.locator('#above .f').first().waitFor();
  const path = await frame.locator('#path .name').textContent();
  check(path === story.culprit, `callers are those of ${path}`);
  const callers = await boxes(frame, 'above');
  // Each is above what it called, and the nearest one wholly in sight.
  const boxesOf = await Promise.all(story.callers.map((name) => {
    check(callers.includes(name), `${name} is in ${callers}`);
    return frame.locator('#above .f').filter(
        {hasText: new RegExp(`^${name}$`)}).first().boundingBox();
  }));
  check(boxesOf.every(({y}, i) => i === 0 || y < boxesOf[i - 1].y),
        `one called the next: ${JSON.stringify(boxesOf)}`);
  const {y, height} = await frame.locator('#below').boundingBox();
  const [nearest] = boxesOf;
  check(nearest.y + nearest.height <= y && height > 0,
        `what is seen ends at ${y}: ${JSON.stringify(nearest)}`);
}

await page.goto(address);
await shown();
await comeCloser();
await markSpot();
await picture('map', {above: '#below-map'});
await readFunctions();
await picture('functions');
await readCallers();
await picture('callers');
await browser.close();
check(complaints.length === 0, complaints.join('\n'));
console.log('the spike and its cause were found');
