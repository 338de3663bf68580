// SPDX-License-Identifier: Apache-2.0
// threads N: N threads take turns on the CPUs, each in ThreadMain -> Turn.

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>

#include "workload.h"

NOINLINE void Turn(void) { Work(100000); }

NOINLINE static void* ThreadMain(void* start) {
  pthread_barrier_wait(start);
  for (;;) {
    Turn();
    sched_yield();
  }
  return NULL;
}

int main(int argc, char** argv) {
  LimitLife();
  const long threads = argc > 1 ? strtol(argv[1], NULL, 10) : 2000;
  pthread_barrier_t start;
  pthread_barrier_init(&start, NULL, (unsigned)threads + 1);
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, 64 * 1024);
  for (long i = 0; i < threads; ++i) {
    pthread_t thread;
    if (pthread_create(&thread, &attributes, &ThreadMain, &start) != 0) {
      perror("pthread_create");
      return 1;
    }
  }
  SayReady();
  pthread_barrier_wait(&start);
  for (;;) pause();
}
