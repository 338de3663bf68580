// SPDX-License-Identifier: Apache-2.0
// Built twice, as relay_a and relay_b. relay_a SELF MILLISECONDS PEER: burns so
// much CPU time in WORK_FUNCTION, then becomes PEER, which becomes SELF in
// turn.

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "workload.h"

static double Now(void) {
  struct timespec now;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

NOINLINE void WORK_FUNCTION(double end) {
  // The clock is asked of the kernel, which takes microseconds.
  while (Now() < end) Work(200000);
}

int main(int argc, char** argv) {
  if (argc < 4) return 2;
  LimitLife();
  if (argc == 4) SayReady();
  WORK_FUNCTION(Now() + atof(argv[2]));
  // The peer's path, the time, and whom to become in turn.
  char* const next[] = {argv[3], argv[3], argv[2], argv[1], "again", NULL};
  execv(argv[3], next);
  return 1;
}
