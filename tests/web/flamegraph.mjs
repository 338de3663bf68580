// flamegraph.mjs PAGE DIFFERENCE LARGE PICTURES: uses the pages as a person
// would, and leaves pictures of them in the folder PICTURES.

import {check, openBrowser, openPage} from './browser.mjs';

const [, , small, difference, large, pictures] = process.argv;
const complaints = [];
const browser = await openBrowser();

const open = async (path) => {
  const page = await openPage(browser, complaints);
  await page.goto('file://' + path);
  await page.locator('#graph .f').first().waitFor();
  return page;
};
const boxes = (page) => page.locator('#graph .f').allTextContents();
const box = (page, name) =>
    page.locator('#graph .f').filter({hasText: new RegExp(`^${name}$`)});
const picture = (page, name) =>
    page.screenshot({path: `${pictures}/${name}.png`});
const theme = (page) => page.evaluate(
    () => getComputedStyle(document.body).backgroundColor);

async function mouse(page) {
  check((await boxes(page)).includes('Work'), 'Work is drawn');
  await box(page, 'Sort').hover();
  const details = await page.locator('#detail').textContent();
  check(details.includes('60 samples, 60.00 % of all'), details);
  check(details.includes('server'), 'the module is shown: ' + details);
  await picture(page, 'light');
  await box(page, 'Sort').click();
  check(!(await boxes(page)).includes('Send'), 'siblings go with the zoom');
  check((await page.locator('#path').textContent()).includes('Work'),
        'the path has the callers');
  await picture(page, 'zoomed');
  await page.locator('#path button').first().click();
  check((await boxes(page)).includes('Send'), 'the path leads back');
}

async function group(page) {
  const hover = async (name) => {
    await box(page, name).hover();
    return page.locator('#detail').textContent();
  };
  await page.locator('#group').selectOption('process');
  check((await hover('server-77')).includes('90 samples, 90.00 % of all'),
        'a process has its samples');
  check((await hover('server-99')).includes('10 samples'), 'so has the other');
  await page.locator('#group').selectOption('thread');
  check((await hover('server-77/77')).includes('70 samples'), 'a thread, too');
  check((await hover('server-77/78')).includes('20 samples'), 'and the other');
  check((await page.evaluate(() => location.hash)).includes('group=thread'),
        'the address has the grouping');
  await picture(page, 'threads');
  await page.locator('#group').selectOption('command');
  check((await hover('server')).includes('100 samples'), 'and back');
}

// Text can be marked with the mouse, which is no click on the frame.
async function select(page) {
  const {x, y, width, height} = await box(page, 'Work').boundingBox();
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
  await page.locator('#search').fill('^(Sort|Send)$');
  check((await page.locator('#matched').textContent()) ===
            'matched: 90 (90.00 %)', 'what matches is summed up');
  check(await page.locator('#graph .f.hit').count() === 2, 'two are marked');
  await picture(page, 'search');
  await page.locator('#search').fill('(');
  check((await page.locator('#matched').textContent()).includes('not a'),
        'a wrong expression says so');
  await page.locator('#search').fill('');
}

async function keyboard(page) {
  await page.locator('#graph').focus();
  await page.keyboard.press('/');
  check(await page.evaluate(() => document.activeElement.id) === 'search',
        '/ leads to the search');
  await page.keyboard.press('Escape');
  // From the whole to the command, then to what it called.
  for (let i = 0; i < 3; ++i) await page.keyboard.press('ArrowDown');
  const named = await page.locator('#detail b').textContent();
  check(named !== 'all', 'arrows move: ' + named);
  await page.keyboard.press('Enter');
  check((await page.locator('#path').textContent()).includes(named),
        'Enter zooms');
  await page.keyboard.press('Escape');
  check((await boxes(page)).includes('Send'), 'Escape goes back');
  const direction = await page.locator('#direction').textContent();
  await page.keyboard.press('i');
  check(await page.locator('#direction').textContent() !== direction,
        'i turns the picture round');
}

async function dark(page) {
  const before = await theme(page);
  await page.keyboard.press('d');
  check(await theme(page) !== before, 'd makes it dark');
  await picture(page, 'dark');
}

async function systemDark(page) {
  const before = await theme(page);
  await page.emulateMedia({colorScheme: 'dark'});
  check(await theme(page) !== before, 'the system says dark');
}

async function times(page) {
  const begin = Date.now();
  await page.goto('file://' + large);
  await page.locator('#graph .f').first().waitFor();
  const opened = Date.now() - begin;
  const zoomed = await page.evaluate(() => {
    const frames = [...document.querySelectorAll('#graph .f')];
    const at = performance.now();
    frames[2].click();
    document.querySelector('#graph').getBoundingClientRect();
    return performance.now() - at;
  });
  const searched = await page.evaluate(() => {
    const field = document.querySelector('#search');
    const at = performance.now();
    field.value = 'f1.*7';
    field.dispatchEvent(new Event('input'));
    document.querySelector('#graph').getBoundingClientRect();
    return performance.now() - at;
  });
  await picture(page, 'large');
  console.log(`100,000 stacks: opened in ${opened} ms, zoomed in ` +
              `${zoomed.toFixed(0)} ms, searched in ${searched.toFixed(0)} ms`);
  // The goal is 2 s on a machine with nothing else to do.
  check(opened < 10000, 'a large page opens');
  check(zoomed < 1000, 'a large page zooms');
}

const page = await open(small);
await systemDark(page);
await page.emulateMedia({colorScheme: 'light'});
await mouse(page);
await group(page);
await select(page);
await paper(page);
await search(page);
await keyboard(page);
await dark(page);
await page.close();
const changed = await open(difference);
check((await changed.locator('#legend').textContent()).includes('more than'),
      'a difference has its own legend');
const largest = await changed.locator('#changed tr').nth(1).textContent();
check(largest === '+90.00 %0.00 %90.00 %Send', 'the table begins: ' + largest);
await box(changed, 'Sort').hover();
await picture(changed, 'difference');
await changed.close();
await times(await openPage(browser, complaints));
await browser.close();
check(complaints.length === 0, complaints.join('; ') || 'no complaints');
