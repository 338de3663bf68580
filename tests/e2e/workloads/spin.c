// SPDX-License-Identifier: Apache-2.0
// spin [NAME]: all time is spent in main -> Outer -> Middle -> Hot. NAME
// becomes the command name.

#include "workload.h"

NOINLINE void Hot(void) { Work(2000000); }

NOINLINE void Middle(void) { Hot(); }

NOINLINE void Outer(void) { Middle(); }

int main(int argc, char** argv) {
  LimitLife();
  if (argc > 1) prctl(PR_SET_NAME, argv[1]);
  SayReady();
  for (;;) Outer();
}
