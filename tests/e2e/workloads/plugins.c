// SPDX-License-Identifier: Apache-2.0
// plugins MILLISECONDS A.so B.so: loads A, works in it that long under the
// command name "in a", unloads it, does the same with B, and so on. B is loaded
// where A was.

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "workload.h"

static double Now(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

static void* WorkIn(const char* path, const char* name, double milliseconds) {
  void* plugin = dlopen(path, RTLD_NOW);
  if (plugin == NULL) exit(1);
  void (*run)(void);
  void* symbol = dlsym(plugin, "Run");
  memcpy(&run, &symbol, sizeof(symbol));
  // Only between the two calls the name is the plugin's.
  prctl(PR_SET_NAME, name);
  for (const double end = Now() + milliseconds; Now() < end;) run();
  prctl(PR_SET_NAME, "between");
  dlclose(plugin);
  return symbol;
}

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  LimitLife();
  const double milliseconds = atof(argv[1]);
  void* a = WorkIn(argv[2], "in a", milliseconds);
  void* b = WorkIn(argv[3], "in b", milliseconds);
  if (a != b) return 3;
  SayReady();
  for (;;) {
    WorkIn(argv[2], "in a", milliseconds);
    WorkIn(argv[3], "in b", milliseconds);
  }
}
