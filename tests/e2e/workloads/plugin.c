// SPDX-License-Identifier: Apache-2.0
// Built twice, as plugin_a.so and plugin_b.so: the same code at the same
// place, with another name.

#include "workload.h"

NOINLINE static void PLUGIN_FUNCTION(void) {
  Work(200000);  // what calls it reads the clock between two
  KEEP_FRAME(1);
}

void Run(void) {
  PLUGIN_FUNCTION();
  KEEP_FRAME(2);
}
