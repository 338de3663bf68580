// SPDX-License-Identifier: Apache-2.0
// spinners COUNTERS PROCESSES [NICE]: use all of the CPU time that they get,
// a few calls deep, and count their turns, and how much of that time was really
// theirs. Compiled without frame pointers.

#include <sys/resource.h>
#include <time.h>

#include "load.h"

// A turn takes about ten microseconds, so that an interrupt makes it much
// longer, and a block of them less than a time slice.
enum { kDepth = 6, kStepsPerTurn = 25000, kTurnsPerBlock = 32 };

NOINLINE static void Turn(void) {
  uint64_t left = kStepsPerTurn;
  while (left > 0) {
    __asm__ volatile("" : "+r"(left));
    --left;
  }
}

NOINLINE static void Descend(int depth) {
  if (depth > 1) {
    Descend(depth - 1);
  } else {
    Turn();
  }
  __asm__ volatile("");  // no tail call
}

static uint64_t NowNs(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static int Compare(const void* left, const void* right) {
  const uint64_t a = *(const uint64_t*)left;
  const uint64_t b = *(const uint64_t*)right;
  return (a > b) - (a < b);
}

// The time that the turns would have taken undisturbed. The median says what
// that is now, as the speed of a CPU whose other half is busy, or which is
// virtual, changes by a third from one moment to the next. What took a fifth
// longer was interrupted.
static uint64_t OwnNs(uint64_t* turns_ns) {
  qsort(turns_ns, kTurnsPerBlock, sizeof(turns_ns[0]), &Compare);
  const uint64_t median = turns_ns[kTurnsPerBlock / 2];
  uint64_t sum = 0;
  for (int i = 0; i < kTurnsPerBlock; ++i) {
    sum += turns_ns[i] > median + median / 5 ? median : turns_ns[i];
  }
  return sum;
}

static void Spin(Counter* counter, char** arguments) {
  const int nice_value =
      arguments[0] == NULL ? 0 : (int)strtol(arguments[0], NULL, 10);
  if (setpriority(PRIO_PROCESS, 0, nice_value) != 0) Fail("setpriority");
  uint64_t turns_ns[kTurnsPerBlock];
  uint64_t last = NowNs();
  for (;;) {
    for (int i = 0; i < kTurnsPerBlock; ++i) {
      Descend(kDepth);
      const uint64_t now = NowNs();
      turns_ns[i] = now - last;
      last = now;
    }
    counter->own_ns += OwnNs(turns_ns);
    counter->turns += kTurnsPerBlock;
  }
}

int main(int count, char** arguments) {
  return RunLoad(count, arguments, &Spin);
}
