// SPDX-License-Identifier: Apache-2.0
// storm N: N times fork and exec of this program, whose child works for a few
// milliseconds of CPU time in StormLeaf and exits. Prints "stormed", exits
// with 7.

#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>

#include "workload.h"

static long CpuMilliseconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

NOINLINE static void StormLeaf(void) { Work(100000); }

int main(int argc, char** argv) {
  LimitLife();
  if (argc > 1 && strcmp(argv[1], "child") == 0) {
    while (CpuMilliseconds() < 8) StormLeaf();
    return 0;
  }
  const long children = argc > 1 ? strtol(argv[1], NULL, 10) : 100;
  for (long i = 0; i < children; ++i) {
    const pid_t child = fork();
    if (child < 0) return 1;
    if (child == 0) {
      execl("/proc/self/exe", "storm", "child", (char*)NULL);
      _exit(1);
    }
    int status = 0;
    if (waitpid(child, &status, 0) != child || status != 0) return 1;
  }
  puts("stormed");
  return 7;
}
