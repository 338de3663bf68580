// SPDX-License-Identifier: Apache-2.0
// long_names COUNTERS PROCESSES FUNCTIONS NAME_BYTES: each process works in so
// many functions in turn that it writes into anonymous memory, with a perf map
// in /tmp that gives each a name of so many bytes. The files of the
// maps go with the load.

#include <string.h>

#include "load.h"

// Counts its argument down to zero, with a frame of its own.
#if defined(__x86_64__)
static const uint8_t kCode[] = {0x55, 0x48, 0x89, 0xe5, 0x48, 0xff,
                                0xcf, 0x75, 0xfb, 0x5d, 0xc3};
#elif defined(__aarch64__)
static const uint32_t kCode[] = {0xa9bf7bfd, 0x910003fd, 0xf1000400,
                                 0x54ffffe1, 0xa8c17bfd, 0xd65f03c0};
#else
#error "how is this loop encoded here?"
#endif

enum { kFunctionBytes = 64 };

typedef void CountDown(uint64_t turns);

static char* WriteCode(long functions) {
  const size_t size = (size_t)functions * kFunctionBytes;
  char* memory = mmap(NULL, size, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) Fail("mmap");
  for (long i = 0; i < functions; ++i) {
    memcpy(memory + i * kFunctionBytes, kCode, sizeof(kCode));
  }
  __builtin___clear_cache(memory, memory + size);
  if (mprotect(memory, size, PROT_READ | PROT_EXEC) != 0) Fail("mprotect");
  return memory;
}

static void WriteMap(const char* memory, long functions, long name_bytes) {
  PerfMapPath path;
  FormatPerfMapPath(path, getpid());
  FILE* map = fopen(path, "we");
  char* name = malloc((size_t)name_bytes + 1);
  if (map == NULL || name == NULL) Fail(path);
  memset(name, 'n', (size_t)name_bytes);
  name[name_bytes] = '\0';
  for (long i = 0; i < functions; ++i) {
    fprintf(map, "%lx %zx %ld%s\n", (unsigned long)memory + i * kFunctionBytes,
            sizeof(kCode), i, name);
  }
  if (fclose(map) != 0) Fail(path);
  free(name);
}

static void Work(Counter* counter, char** arguments) {
  const long functions = strtol(arguments[0], NULL, 10);
  char* memory = WriteCode(functions);
  WriteMap(memory, functions, strtol(arguments[1], NULL, 10));
  for (long i = 0;; i = (i + 1) % functions) {
    CountDown* function = NULL;
    char* place = memory + i * kFunctionBytes;
    memcpy(&function, &place, sizeof(place));
    function(1000000);
    counter->turns += 1;
  }
}

int main(int count, char** arguments) {
  if (count < 5) {
    fputs("usage: long_names COUNTERS PROCESSES FUNCTIONS NAME_BYTES\n",
          stderr);
    return 2;
  }
  return RunLoad(count, arguments, &Work);
}
