// SPDX-License-Identifier: Apache-2.0
#include "daemon/base/freed_memory.h"

#include <malloc.h>

namespace profd {

void ReturnFreedMemory() {
#ifdef __GLIBC__
  ::mallopt(M_MMAP_THRESHOLD, 256 << 10);
  // Each thread would have a heap of its own, and each would keep what it used.
  ::mallopt(M_ARENA_MAX, 2);
#endif
}

void ReturnUnusedMemory() {
#ifdef __GLIBC__
  ::malloc_trim(0);
#endif
}

}  // namespace profd
