// SPDX-License-Identifier: Apache-2.0
// leader: the first thread ends, another works on in Survivor for ever.
// leader PROGRAM [ARG...]: another thread than the first calls exec.

#include <pthread.h>
#include <stdio.h>

#include "workload.h"

static char** command;

NOINLINE static void Survivor(void) { Work(2000000); }

// When the first thread is gone, /proc/PID/maps is empty.
static void WaitForTheLeader(void) {
  char line[8];
  for (;;) {
    FILE* maps = fopen("/proc/self/maps", "r");
    const char* got = maps == NULL ? NULL : fgets(line, sizeof(line), maps);
    if (maps != NULL) fclose(maps);
    if (got == NULL) return;
    usleep(1000);
  }
}

NOINLINE static void* ThreadMain(void* unused) {
  (void)unused;
  if (command != NULL) {
    execv(command[0], command);
    _exit(1);
  }
  WaitForTheLeader();
  SayReady();
  for (;;) Survivor();
  return NULL;
}

int main(int argc, char** argv) {
  LimitLife();
  if (argc > 1) command = argv + 1;
  pthread_t thread;
  if (pthread_create(&thread, NULL, &ThreadMain, NULL) != 0) return 1;
  if (command != NULL) pthread_join(thread, NULL);
  pthread_exit(NULL);
}
