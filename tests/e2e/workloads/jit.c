// SPDX-License-Identifier: Apache-2.0
// jit: works in two functions that it writes into anonymous memory. Before
// "ready" it prints their addresses and sizes as a perf map has them.

#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

#include "workload.h"

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

typedef void CountDown(uint64_t turns);

int main(void) {
  LimitLife();
  uint8_t* memory = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return 1;
  CountDown* functions[2];
  for (int i = 0; i < 2; ++i) {
    uint8_t* place = memory + i * 64;
    memcpy(place, kCode, sizeof(kCode));
    memcpy(&functions[i], &place, sizeof(place));
    printf("%lx %zx\n", (unsigned long)place, sizeof(kCode));
  }
  __builtin___clear_cache((char*)memory, (char*)memory + 4096);
  if (mprotect(memory, 4096, PROT_READ | PROT_EXEC) != 0) return 1;
  SayReady();
  for (;;) {
    functions[0](1000000);
    functions[1](1000000);
  }
}
