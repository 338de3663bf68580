// SPDX-License-Identifier: Apache-2.0
// deep N: works at the bottom of N nested calls of Descend.

#include <stdlib.h>

#include "workload.h"

NOINLINE static void Bottom(void) {
  SayReady();
  // Not for ever, in the compiler's eyes, or Descend would never return.
  static volatile int on = 1;
  while (on) Work(1000000);
}

NOINLINE static void Descend(long left) {
  if (left <= 1) {
    Bottom();
  } else {
    Descend(left - 1);
  }
  KEEP_FRAME(left);
}

int main(int argc, char** argv) {
  LimitLife();
  Descend(argc > 1 ? strtol(argv[1], NULL, 10) : 600);
}
