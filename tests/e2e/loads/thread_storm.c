// SPDX-License-Identifier: Apache-2.0
// thread_storm COUNTERS PROCESSES: start and join threads that have names of
// their own and work for a fraction of a millisecond, many at a time, and
// count them.

#include <pthread.h>

#include "load.h"

enum { kAtOnce = 200, kStackBytes = 64 << 10, kSteps = 20000 };

static void* ShortLife(void* number) {
  char name[16];
  snprintf(name, sizeof(name), "storm-%lu", (unsigned long)(uintptr_t)number);
  prctl(PR_SET_NAME, name);
  for (volatile int left = kSteps; left > 0;) left = left - 1;
  return NULL;
}

static void Storm(Counter* counter, char** arguments) {
  (void)arguments;
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, kStackBytes);
  pthread_t threads[kAtOnce];
  for (;;) {
    int started = 0;
    while (started < kAtOnce &&
           pthread_create(
               &threads[started], &attributes, &ShortLife,
               (void*)(uintptr_t)(counter->turns + (uint64_t)started)) == 0) {
      ++started;
    }
    if (started == 0) Fail("pthread_create");
    for (int i = 0; i < started; ++i) pthread_join(threads[i], NULL);
    counter->turns += (uint64_t)started;
  }
}

int main(int count, char** arguments) {
  return RunLoad(count, arguments, &Storm);
}
