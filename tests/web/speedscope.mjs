// SPDX-License-Identifier: Apache-2.0
// speedscope.mjs FILE...: opens each in speedscope's own page, and prints a line
// of JSON with its table of functions.

import {readFileSync, writeFileSync} from 'node:fs';
import path from 'node:path';

import {check, openBrowser, openPage} from './browser.mjs';

const browser = await openBrowser();
for (const file of process.argv.slice(2)) {
  const complaints = [];
  const page = await openPage(browser, complaints);
  // As the package's own command hands it a file.
  const script = path.resolve(file) + '.js';
  const bytes = readFileSync(file).toString('base64');
  writeFileSync(script, `speedscope.loadFileFromBase64(${
      JSON.stringify(path.basename(file))}, "${bytes}")`);
  await page.goto('file://' + process.env.KSYM_NODE_MODULES +
                  '/speedscope/dist/release/index.html#localProfilePath=' +
                  script);
  // Its third view is a table, which is no picture.
  await page.getByText('Sandwich').click({timeout: 15000});
  await page.locator('tr:has(td)').first().waitFor({timeout: 15000});
  const rows = await page.locator('tr:has(td)').evaluateAll(
      (all) => all.map((row) => [...row.cells].map((cell) => cell.innerText)));
  check(rows.length > 0, file + ': no function');
  console.log(JSON.stringify({file: path.basename(file), rows,
                              complaints}));
  await page.close();
}
await browser.close();
