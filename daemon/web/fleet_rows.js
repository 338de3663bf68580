// SPDX-License-Identifier: Apache-2.0
'use strict';

// The same as machine_rows.js of a fleet, whose services send an interval every
// ten seconds.
const PAGE_TITLE = 'Fleet';
const LEAST_STEP = 10;
const ROWS = [
  {by: 'service', text: 'services', filter: 'service', none: '[no service]',
   isLong: true},
  {by: 'host', text: 'hosts', filter: 'host', none: '[no host]', isLong: true},
  {by: 'version', text: 'versions', filter: 'version', none: '[no version]'},
  {by: 'unit', text: 'units', filter: 'unit', none: '[no unit]'},
  {by: 'pod', text: 'pods', filter: 'pod', none: '[no pod]', isLong: true},
  {by: 'comm', text: 'commands', filter: 'command', none: '[no command]'},
];
const FILTER_FIELDS = [
  {filter: 'service', label: 'Service', isSet: true},
  {filter: 'host', label: 'Host', isSet: true},
  {filter: 'version', label: 'Version', isSet: true},
  {filter: 'unit', label: 'Unit', isSet: true},
  {filter: 'pod', label: 'Pod', hint: 'name', isSet: true},
  {filter: 'command', label: 'Command', isSet: true},
  {filter: 'function', label: 'Function'},
];
