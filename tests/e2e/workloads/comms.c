// SPDX-License-Identifier: Apache-2.0
// One child per hostile command name, each of them busy. Prints the children's
// pids in the order of kNames, then "ready".

#include <stddef.h>

#include "workload.h"

// tests/e2e/test_names.py has the same list.
static const char* const kNames[] = {"a;b;main 99",
                                     "two words",
                                     "new\nline 7",
                                     "esc\033[31mred",
                                     "bad\xff\xfe\x80",
                                     "count 12 3.5",
                                     "-",
                                     "mark_[k]",
                                     "quote\"\\\t",
                                     " lead",
                                     "rlo\xe2\x80\xae!"};

NOINLINE static void Busy(void) { Work(1000000); }

int main(void) {
  LimitLife();
  const pid_t parent = getpid();
  for (size_t i = 0; i < sizeof(kNames) / sizeof(kNames[0]); ++i) {
    const pid_t child = fork();
    if (child < 0) return 1;
    if (child == 0) {
      LimitLife();
      if (getppid() != parent) return 1;
      prctl(PR_SET_NAME, kNames[i]);
      for (;;) Busy();
    }
    printf("%d\n", (int)child);
  }
  SayReady();
  for (;;) pause();
}
