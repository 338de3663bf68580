// SPDX-License-Identifier: Apache-2.0
#pragma once

// What the loads share. Each is started as
//
//   LOAD COUNTERS PROCESSES [ARGUMENT...]
//
// and does its work in that many processes until it is killed. COUNTERS is a
// file of 64 bytes per process; the first eight count that process's work, so
// whoever reads the file sees that all of them run, and how fast.
//
// A load is a process group. It ends as a whole when its first process gets
// SIGTERM, with the process that started it, however that ends, and after a
// quarter of an hour in any case.

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define NOINLINE __attribute__((noinline, noclone))

enum { kMaxSeconds = 900, kMaxProcesses = 4096 };

typedef struct {
  volatile uint64_t turns;
  volatile uint64_t own_ns;  // time well spent; of spinners only
  char other_cache_line[48];
} Counter;

typedef void LoadBody(Counter* counter, char** arguments);

typedef char PerfMapPath[40];

// The perf maps of the load's processes, which go with it. Known to the first
// process only.
static PerfMapPath* perf_maps;
static volatile long perf_map_count;

static inline void FormatPerfMapPath(PerfMapPath path, pid_t pid) {
  snprintf(path, sizeof(PerfMapPath), "/tmp/perf-%d.map", (int)pid);
}

static void EndLoad(int signal_number) {
  (void)signal_number;
  for (long i = 0; i < perf_map_count; ++i) unlink(perf_maps[i]);
  kill(0, SIGKILL);
}

static inline void Fail(const char* what) {
  perror(what);
  EndLoad(0);
}

static inline void BecomeLoad(void) {
  setpgid(0, 0);
  struct sigaction end = {.sa_handler = &EndLoad};
  sigaction(SIGTERM, &end, NULL);
  sigaction(SIGALRM, &end, NULL);
  alarm(kMaxSeconds);
  prctl(PR_SET_PDEATHSIG, SIGTERM);
}

static inline Counter* MapCounters(const char* path, long count) {
  const size_t size = (size_t)count * sizeof(Counter);
  const int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (fd < 0 || ftruncate(fd, (off_t)size) != 0) Fail(path);
  void* memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (memory == MAP_FAILED) Fail(path);
  close(fd);
  return memory;
}

// Starts the processes; returns when one of them has ended, as none should.
static inline int RunLoad(int count, char** arguments, LoadBody* body) {
  const long processes = count < 3 ? 0 : strtol(arguments[2], NULL, 10);
  if (processes < 1 || processes > kMaxProcesses) {
    fprintf(stderr, "usage: %s COUNTERS PROCESSES [ARGUMENT...]\n",
            arguments[0]);
    return 2;
  }
  BecomeLoad();
  Counter* counters = MapCounters(arguments[1], processes);
  perf_maps = calloc((size_t)processes, sizeof(*perf_maps));
  if (perf_maps == NULL) Fail("calloc");
  for (long i = 0; i < processes; ++i) {
    const pid_t child = fork();
    if (child < 0) Fail("fork");
    if (child == 0) {
      signal(SIGTERM, SIG_DFL);
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      body(&counters[i], arguments + 3);
      exit(1);
    }
    FormatPerfMapPath(perf_maps[i], child);
    perf_map_count = i + 1;
  }
  while (wait(NULL) < 0 && errno == EINTR) {
  }
  EndLoad(0);
  return 1;
}
