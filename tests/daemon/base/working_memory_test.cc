// SPDX-License-Identifier: Apache-2.0
#include "daemon/base/working_memory.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <memory>

#include "tests/ksym/sanitized.h"

namespace profd {
namespace {

// Sanitizers bring one, and so do other C libraries.
#ifdef __GLIBC__
constexpr bool kHasOwnAllocator = ksym::kIsSanitized;
#else
constexpr bool kHasOwnAllocator = true;
#endif

constexpr size_t kBytes = size_t{64} << 20;

uintptr_t EndOfHeap() { return reinterpret_cast<uintptr_t>(::sbrk(0)); }

// Large blocks come from the heap that was grown, one after the other, and
// freeing them does not give it back. Too little to be worth it changes
// nothing.
TEST(WorkingMemoryTest, GrowsTheHeapOnce) {
  if (kHasOwnAllocator) GTEST_SKIP() << "another allocator";
  const uintptr_t begin = EndOfHeap();
  PrepareWorkingMemory(1000);
  EXPECT_EQ(EndOfHeap(), begin);
  PrepareWorkingMemory(kBytes);
  const uintptr_t end = EndOfHeap();
  EXPECT_GE(end - begin, kBytes);
  for (int i = 0; i < 3; ++i) {
    const auto first = std::make_unique_for_overwrite<char[]>(kBytes / 4);
    const auto second = std::make_unique_for_overwrite<char[]>(kBytes / 4);
    for (const auto* block : {&first, &second}) {
      const auto address = reinterpret_cast<uintptr_t>(block->get());
      EXPECT_LT(address, end);
      EXPECT_GT(address + kBytes, begin);
      std::memset(block->get(), i, kBytes / 4);
    }
  }
  EXPECT_EQ(EndOfHeap(), end);
}

}  // namespace
}  // namespace profd
