// SPDX-License-Identifier: Apache-2.0
// forks: forks children for ever that work for a few milliseconds of CPU time
// in ChildWork or, the child of a child, in GrandchildWork. Nothing calls
// exec, so all mappings are those of the first process.

#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>

#include "workload.h"

static long CpuMilliseconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

NOINLINE static void GrandchildWork(void) { Work(100000); }
NOINLINE static void ChildWork(void) { Work(100000); }

static void Grandchild(void) {
  while (CpuMilliseconds() < 6) GrandchildWork();
}

static void Child(void) {
  while (CpuMilliseconds() < 6) ChildWork();
}

int main(void) {
  LimitLife();
  SayReady();
  for (;;) {
    const pid_t child = fork();
    if (child < 0) return 1;
    if (child != 0) {
      waitpid(child, NULL, 0);
      continue;
    }
    prctl(PR_SET_NAME, "forked");
    Child();
    const pid_t grandchild = fork();
    if (grandchild == 0) {
      prctl(PR_SET_NAME, "forked twice");
      Grandchild();
      _exit(0);
    }
    waitpid(grandchild, NULL, 0);
    _exit(0);
  }
}
