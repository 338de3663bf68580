// SPDX-License-Identifier: Apache-2.0
#include "daemon/base/working_memory.h"

#include <malloc.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <limits>

namespace profd {
namespace {

constexpr size_t kLargePageBytes = size_t{2} << 20;
constexpr size_t kMaxBytes = size_t{1} << 30;
// The largest for blocks of the heap that the C library accepts.
constexpr int kLargestBlockBytes = 32 << 20;

uintptr_t EndOfHeap() { return reinterpret_cast<uintptr_t>(::sbrk(0)); }

}  // namespace

void PrepareWorkingMemory(size_t bytes) {
#ifdef __GLIBC__
  bytes = std::min(bytes, kMaxBytes);
  if (bytes < kLargePageBytes) return;
  const uintptr_t before = EndOfHeap();
  ::mallopt(M_MMAP_THRESHOLD, kLargestBlockBytes);
  ::mallopt(M_TRIM_THRESHOLD, std::numeric_limits<int>::max());
  ::mallopt(M_TOP_PAD, static_cast<int>(bytes));
  // More than is left of the heap, so that it grows, by as much as is padded.
  // Volatile, or the compiler leaves both calls out.
  void* volatile block = std::malloc(kLargePageBytes);
  std::free(block);
  ::mallopt(M_TOP_PAD, static_cast<int>(kLargePageBytes));
  const uintptr_t after = EndOfHeap();
  const uintptr_t begin =
      (before + kLargePageBytes - 1) / kLargePageBytes * kLargePageBytes;
  if (after > begin) {
    ::madvise(reinterpret_cast<void*>(begin), after - begin, MADV_HUGEPAGE);
  }
#endif
}

}  // namespace profd
