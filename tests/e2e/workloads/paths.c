// SPDX-License-Identifier: Apache-2.0
// Walks 10,000 distinct call paths in random order: four levels, each through
// one of ten functions, to one leaf.

#include "workload.h"

typedef void Step(unsigned digits, int left);
static Step* const kSteps[];

NOINLINE static void Leaf(void) { Work(5000); }

NOINLINE static void Walk(unsigned digits, int left) {
  if (left == 0) {
    Leaf();
  } else {
    kSteps[digits % 10](digits / 10, left - 1);
  }
}

#define DEFINE_STEP(n)                                      \
  NOINLINE static void Step##n(unsigned digits, int left) { \
    Walk(digits, left);                                     \
    KEEP_FRAME(n);                                          \
  }
DEFINE_STEP(0)
DEFINE_STEP(1)
DEFINE_STEP(2)
DEFINE_STEP(3)
DEFINE_STEP(4)
DEFINE_STEP(5)
DEFINE_STEP(6)
DEFINE_STEP(7)
DEFINE_STEP(8)
DEFINE_STEP(9)

static Step* const kSteps[] = {Step0, Step1, Step2, Step3, Step4,
                               Step5, Step6, Step7, Step8, Step9};

int main(void) {
  LimitLife();
  SayReady();
  unsigned random = 2463534242u;
  for (;;) {
    random ^= random << 13;
    random ^= random >> 17;
    random ^= random << 5;
    Walk(random % 10000, 4);
  }
}
