// SPDX-License-Identifier: Apache-2.0
// ui.mjs ADDRESS PICTURES: opens the page of a history at the address that
// `ksym-profile ui` printed, and looks whether it is all there. Then reads a
// line from standard input, by which time the service has ended.

import {createInterface} from 'node:readline';

import {check, openBrowser, openPage} from './browser.mjs';

const [, , address, pictures] = process.argv;
const [base, token] = address.split('/#token=');
const complaints = [];
const browser = await openBrowser();
const page = await openPage(
    browser, complaints, {allowed: new RegExp(`^(${base}/|data:|blob:)`)});
await page.goto(address + '&last=120');
const frame = page.frameLocator('#frame-place iframe');
await frame.locator('.f').first().waitFor();
await page.locator('#functions .rows .row').first().waitFor();
check(!page.url().includes(token), 'the token left the address');
check(await page.locator('#trouble').isHidden(), 'nothing is wrong');
check(await page.locator('#row-names > *').count() > 0, 'there are rows');
await page.locator('#save-menu summary').click();
const [download] = await Promise.all([
  page.waitForEvent('download'),
  page.getByRole('button', {name: 'As folded'}).click(),
]);
check((await download.createReadStream()) !== null, 'it can be saved');
await page.screenshot({path: `${pictures}/ui.png`, fullPage: true});
check(complaints.length === 0, complaints.join('\n'));
console.log('ready');
await new Promise((done) => createInterface({input: process.stdin})
    .once('line', done));
await page.keyboard.press('Escape');
await page.locator('#refresh').click();
await page.waitForFunction(() => document.getElementById('trouble')
    .textContent.includes('ksym-profiled is not running'));
await page.screenshot({path: `${pictures}/ui-gone.png`, fullPage: true});
// The browser says of each answer that it was 502.
check(complaints.every((text) => text.includes('502')), complaints.join('\n'));
await browser.close();
console.log('the page is right by way of ui');
