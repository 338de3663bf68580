// SPDX-License-Identifier: Apache-2.0
'use strict';

new Page(JSON.parse(byId('data').textContent));
