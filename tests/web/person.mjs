// SPDX-License-Identifier: Apache-2.0
// What a person sees of the flame graph page and does with it.

export const boxes = (page, id = 'graph') =>
    page.locator(`#${id} .f`).allTextContents();
export const box = (page, name, id = 'graph') =>
    page.locator(`#${id} .f`).filter({hasText: new RegExp(`^${name}$`)})
        .first();
// Where a frame is, at one moment: boxes are made anew while a page draws.
export const place = (page, name) => page.evaluate((name) => {
  const found = [...document.querySelectorAll('#graph .f')].find(
      (frame) => frame.textContent === name);
  const {x, y, width, height} = found.getBoundingClientRect();
  return {x, y, width, height};
}, name);
export const text = (page, id) => page.locator('#' + id).textContent();
export const row = (page, name) => page.locator('.rows .row').filter(
    {has: page.locator('.name', {hasText: new RegExp(`^${name}$`)})});
export const view = (page, name) =>
    page.locator(`[data-view="${name}"]`).click();
export const hash = (page) => page.evaluate(() => location.hash);
