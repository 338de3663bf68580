// SPDX-License-Identifier: Apache-2.0
// Makes some 1,000 functions a second, for SECONDS, and drops them again. What
// `made_N` calls is `part_N`, and nothing else.
'use strict';

const end = Date.now() + 1000 * Number(process.argv[2]);
let number = 0;
function churn() {
  for (let i = 0; i < 10; i++) {
    const n = number++;
    const made = eval(`
      (function () {
        function part_${n}(limit) {
          let total = 0;
          for (let i = 0; i < limit; i++) total += Math.sqrt(i);
          return total;
        }
        return function made_${n}() {
          let total = 0;
          for (let i = 0; i < 40; i++) total += part_${n}(1000);
          return total;
        };
      })()`);
    made();
  }
  if (Date.now() < end) setTimeout(churn, 1);
}
process.stdout.write('ready\n');
churn();
