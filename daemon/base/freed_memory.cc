// SPDX-License-Identifier: Apache-2.0
#include "daemon/base/freed_memory.h"

#include <link.h>
#include <malloc.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>

namespace profd {
namespace {

// Writable segments are left alone: they hold what the loader and the program
// have written.
int ReturnSegments(dl_phdr_info* object, size_t, void*) {
  const uintptr_t page = ::sysconf(_SC_PAGESIZE);
  for (int i = 0; i < object->dlpi_phnum; ++i) {
    const auto& segment = object->dlpi_phdr[i];
    if (segment.p_type != PT_LOAD || (segment.p_flags & PF_W) != 0) continue;
    const uintptr_t begin = object->dlpi_addr + segment.p_vaddr;
    const uintptr_t first = begin / page * page;
    // An error means that it stays: the vdso, or memory that is locked.
    ::madvise(
        reinterpret_cast<void*>(first),  // NOLINT(performance-no-int-to-ptr)
        begin + segment.p_memsz - first, MADV_DONTNEED);
  }
  return 0;
}

}  // namespace

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

void ReturnFilePages() { ::dl_iterate_phdr(ReturnSegments, nullptr); }

}  // namespace profd
