// SPDX-License-Identifier: Apache-2.0
// All time is spent on fresh pages, touched in main -> TouchPages.

#include <sys/mman.h>

#include "workload.h"

NOINLINE static void TouchPages(volatile char* pages, size_t size) {
  for (size_t i = 0; i < size; i += 4096) pages[i] = 1;
}

int main(void) {
  LimitLife();
  SayReady();
  const size_t size = 4 << 20;
  for (;;) {
    char* pages = mmap(NULL, size, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pages == MAP_FAILED) return 1;
    madvise(pages, size, MADV_NOHUGEPAGE);
    TouchPages(pages, size);
    munmap(pages, size);
  }
}
