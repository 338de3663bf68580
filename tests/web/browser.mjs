// SPDX-License-Identifier: Apache-2.0
// What both drivers share: Debian's Chromium, and a page that may load nothing
// but files, whose messages and requests are collected.

import {createRequire} from 'node:module';

const require = createRequire(process.env.KSYM_NODE_MODULES + '/');
const {chromium} = require('playwright-core');

export async function openBrowser() {
  return await chromium.launch({
    executablePath: process.env.KSYM_CHROMIUM,
    args: ['--no-sandbox', '--enable-unsafe-swiftshader',
           '--disable-background-networking'],
  });
}

// `complaints` gets errors on the console and requests for anything but files,
// or but what is `allowed`. `options` are those of Playwright's new page.
export async function openPage(
    browser, complaints, {allowed = /^(file|data|blob):/, ...options} = {}) {
  const page = await browser.newPage(
      {viewport: {width: 1200, height: 800}, ...options});
  // A busy machine is no failure.
  page.setDefaultTimeout(120000);
  page.on('console', (message) => {
    // Chromium's own about drawing in software, and about tests that read what
    // was drawn.
    if (/GL Driver Message|willReadFrequently/.test(message.text())) return;
    if (['error', 'warning'].includes(message.type())) {
      complaints.push(`console: ${message.text()}`);
    }
  });
  page.on('pageerror', (error) => complaints.push(`error: ${error}`));
  page.on('request', (request) => {
    if (!allowed.test(request.url())) {
      complaints.push(`request: ${request.url()}`);
    }
  });
  return page;
}

export function check(condition, what) {
  if (!condition) throw new Error(`does not hold: ${what}`);
}
