// SPDX-License-Identifier: Apache-2.0
// mapping_storm COUNTERS PROCESSES HELD PER_SECOND FILE...: each process has
// HELD executable mappings of the files and takes away and maps again one of
// them PER_SECOND times a second (0: as often as it can), and counts these.

#include <sys/stat.h>
#include <time.h>

#include "load.h"

enum { kMostFiles = 1024, kBatch = 20 };

static int files[kMostFiles];
static long file_pages[kMostFiles];
static long file_count;

static void OpenFiles(char** paths) {
  const long page_bytes = sysconf(_SC_PAGESIZE);
  for (; *paths != NULL && file_count < kMostFiles; ++paths, ++file_count) {
    files[file_count] = open(*paths, O_RDONLY | O_CLOEXEC);
    struct stat status;
    if (files[file_count] < 0 || fstat(files[file_count], &status) != 0 ||
        status.st_size < page_bytes) {
      Fail(*paths);
    }
    file_pages[file_count] = status.st_size / page_bytes;
  }
}

// Neighbours are never the same file's next page, or the kernel would make one
// mapping of them.
static void* Map(long number) {
  const long page_bytes = sysconf(_SC_PAGESIZE);
  const long file = number % file_count;
  const long page = number / file_count * 7 % file_pages[file];
  void* memory = mmap(NULL, (size_t)page_bytes, PROT_READ | PROT_EXEC,
                      MAP_PRIVATE, files[file], page * page_bytes);
  if (memory == MAP_FAILED) Fail("mmap");
  return memory;
}

static void Pause(long per_second) {
  if (per_second == 0) return;
  const long ns = kBatch * 1000000000L / per_second;
  const struct timespec time = {.tv_sec = ns / 1000000000L,
                                .tv_nsec = ns % 1000000000L};
  nanosleep(&time, NULL);
}

static void Storm(Counter* counter, char** arguments) {
  const long held = strtol(arguments[0], NULL, 10);
  const long per_second = strtol(arguments[1], NULL, 10);
  OpenFiles(arguments + 2);
  void** mappings = calloc((size_t)held, sizeof(*mappings));
  if (mappings == NULL) Fail("calloc");
  for (long i = 0; i < held; ++i) mappings[i] = Map(i);
  for (long i = 0;; ++i) {
    munmap(mappings[i % held], (size_t)sysconf(_SC_PAGESIZE));
    mappings[i % held] = Map(held + i);
    counter->turns += 1;
    if (i % kBatch == 0) Pause(per_second);
  }
}

int main(int count, char** arguments) {
  if (count < 6) {
    fputs("usage: mapping_storm COUNTERS PROCESSES HELD PER_SECOND FILE...\n",
          stderr);
    return 2;
  }
  return RunLoad(count, arguments, &Storm);
}
