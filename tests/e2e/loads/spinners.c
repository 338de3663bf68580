// spinners COUNTERS PROCESSES [NICE]: use all of the CPU time that they get,
// a few calls deep, and count their turns, so that what is left to them beside
// something else can be measured. Compiled without frame pointers.

#include <sys/resource.h>

#include "load.h"

enum { kDepth = 6, kStepsPerTurn = 100000 };

// On x86 two instructions, so that turns take the same time wherever the
// linker puts them.
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

static void Spin(Counter* counter, char** arguments) {
  const int nice_value =
      arguments[0] == NULL ? 0 : (int)strtol(arguments[0], NULL, 10);
  if (setpriority(PRIO_PROCESS, 0, nice_value) != 0) Fail("setpriority");
  for (;;) {
    Descend(kDepth);
    counter->turns += 1;
  }
}

int main(int count, char** arguments) {
  return RunLoad(count, arguments, &Spin);
}
