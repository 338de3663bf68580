// SPDX-License-Identifier: Apache-2.0
#pragma once

// What every workload does first and while it works. A workload prints
// "ready" once its main loop is reached, dies with the test that started it,
// and in any case after two minutes.

#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <unistd.h>

#define NOINLINE __attribute__((noinline))

static inline void LimitLife(void) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  alarm(120);
}

static inline void SayReady(void) {
  puts("ready");
  fflush(stdout);
}

// A loop that the compiler keeps. Its counter is on the stack, because gcc
// leaves the frame pointer out of a function that does not use the stack,
// whatever the flags say, and then its caller is missing in every sample.
static inline __attribute__((always_inline)) void Work(unsigned long turns) {
  for (volatile unsigned long left = turns; left != 0;) left = left - 1;
}

// Keeps a function's frame until its end: the call before this is no tail
// call, and functions that differ in `value` are not merged.
#define KEEP_FRAME(value)                  \
  do {                                     \
    volatile unsigned long keep = (value); \
    (void)keep;                            \
  } while (0)
