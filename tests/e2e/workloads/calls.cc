// SPDX-License-Identifier: Apache-2.0
// calls: known calls of every kind that is hard to walk, compiled without
// frame pointers. tests/e2e/test_unwind.py has the table of who calls whom.

#include <alloca.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>

#include "workload.h"

#ifdef __clang__
#define KEEP __attribute__((noinline))
#else
#define KEEP __attribute__((noinline, noclone))
#endif

static volatile unsigned long sink;

static inline __attribute__((always_inline)) void Burn(long turns) {
  for (long i = 0; i < turns; ++i) sink = sink + 1;
}

extern "C" {

// Called back from the middle of the C library.
KEEP int Compare(const void* a, const void* b) {
  Burn(30);
  return *static_cast<const int*>(a) - *static_cast<const int*>(b);
}

KEEP void Sort(int n) {
  int values[64];
  for (int i = 0; i < 64; ++i) values[i] = (i * 7919 + n) % 101;
  qsort(values, 64, sizeof(values[0]), &Compare);
  sink = sink + values[3];
}

// A frame whose size only the run knows.
KEEP void Allocate(int n) {
  const size_t size = 64 + n % 500;
  char* memory = static_cast<char*>(alloca(size));
  memset(memory, 1, size);
  Burn(500);
  sink = sink + memory[n % 64];
}

KEEP void Throw(int n) {
  Burn(200);
  if (n >= 0) throw n;
}

KEEP void Catch(int n) {
  try {
    Throw(n);
  } catch (int value) {
    sink = sink + value;
    Burn(300);
  }
}

KEEP void Recurse(int depth) {
  char memory[40];
  memset(memory, depth, sizeof(memory));
  if (depth > 0) {
    Recurse(depth - 1);
  } else {
    Burn(2000);
  }
  sink = sink + memory[depth % 40];
}

// Through the procedure linkage table, at each of its instructions.
KEEP void CallLibrary(int n) {
  char text[32];
  for (int i = 0; i < 120; ++i) {
    memset(text, n, sizeof(text));
    sink = sink + labs(n - i);
    sink = sink + strnlen(text, sizeof(text));
  }
}

KEEP void OnSignal(int) { Burn(100000); }
}

int main() {
  LimitLife();
  struct sigaction action = {};
  action.sa_handler = &OnSignal;
  sigaction(SIGPROF, &action, nullptr);
  const itimerval every = {{0, 2000}, {0, 2000}};
  setitimer(ITIMER_PROF, &every, nullptr);
  SayReady();
  for (int i = 0;; ++i) {
    Sort(i);
    Allocate(i);
    Catch(i);
    Recurse(20);
    CallLibrary(i);
  }
}
