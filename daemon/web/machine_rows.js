// SPDX-License-Identifier: Apache-2.0
'use strict';

// What the page of one machine's history tells apart: the rows that its heat map
// may have, and the filters, of which each row is one. Filters with isSet may have
// several names, and others where two sides are compared. Nothing here knows of a
// document.
const PAGE_TITLE = 'History';
const LEAST_STEP = 1;  // seconds
const ROWS = [
  {by: 'unit', text: 'units', filter: 'unit', none: '[no unit]'},
  {by: 'pod', text: 'pods', filter: 'pod', none: '[no pod]', isLong: true},
  {by: 'container', text: 'containers', filter: 'container',
   none: '[no container]', isLong: true},
  {by: 'comm', text: 'commands', filter: 'command', none: '[no command]'},
  {by: 'pid', text: 'processes', filter: 'pid', none: '[no process]'},
];
const FILTER_FIELDS = [
  {filter: 'unit', label: 'Unit'},
  {filter: 'pod', label: 'Pod', hint: 'name, or uid'},
  {filter: 'container', label: 'Container', hint: 'name, or id'},
  {filter: 'command', label: 'Command'},
  {filter: 'pid', label: 'Process', hint: 'PID', isNumber: true},
  {filter: 'function', label: 'Function'},
];
