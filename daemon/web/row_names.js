// SPDX-License-Identifier: Apache-2.0
'use strict';

// What rows of the heat map are called. Nothing here knows of a document.
const rowsBy = (by) => ROWS.find((rows) => rows.by === by);
const ROW_NAME_LETTERS = 120;
const LONG_LABEL_LETTERS = 38;  // as many as there is room for

function rowName(row, by) {
  if (row.name === '') return rowsBy(by).none;
  return shortened(row.comm ? `${row.name} ${row.comm}` : row.name,
                   ROW_NAME_LETTERS);
}

function hasLongNames(by) {
  return rowsBy(by).isLong === true;
}

// A name as it stands beside the row. Pods of one namespace, and those of one
// deployment, differ in their ends.
function rowLabel(name, by) {
  if (by === 'container' && /^[0-9a-f]{64}$/.test(name)) {
    return name.slice(0, 12);
  }
  const letters = [...name];
  if (!hasLongNames(by) || letters.length <= LONG_LABEL_LETTERS) return name;
  const begin = Math.floor(LONG_LABEL_LETTERS / 3);
  const end = LONG_LABEL_LETTERS - begin - 1;
  return `${letters.slice(0, begin).join('')}…${letters.slice(-end).join('')}`;
}
