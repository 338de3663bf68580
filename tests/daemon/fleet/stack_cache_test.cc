// SPDX-License-Identifier: Apache-2.0
#include "daemon/fleet/stack_cache.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace profd::fleet {
namespace {

// The names of a stack, or "none".
std::string NamesOf(StackCache& cache, uint64_t stack) {
  std::string names;
  const bool found = cache.Find(stack, [&](std::span<const StackFrame> frames) {
    for (const StackFrame& frame : frames) {
      names +=
          std::string(frame.name) + " of " + std::string(frame.module) + ";";
    }
  });
  return found ? names : "none";
}

TEST(StackCacheTest, KeepsFrames) {
  StackCache cache(size_t{1} << 20);
  EXPECT_EQ(NamesOf(cache, 1), "none");
  cache.Add(1, std::vector<StackFrame>{{&kUserFrame, "main", "/bin/a"},
                                       {&kKernelFrame, "main", "[kernel]"}});
  cache.Add(2, {});
  EXPECT_EQ(NamesOf(cache, 1), "main of /bin/a;main of [kernel];");
  EXPECT_EQ(NamesOf(cache, 2), "");
  std::vector<const FrameKind*> kinds;
  cache.Find(1, [&](std::span<const StackFrame> frames) {
    for (const StackFrame& frame : frames) kinds.push_back(frame.kind);
  });
  EXPECT_EQ(kinds, (std::vector<const FrameKind*>{&kUserFrame, &kKernelFrame}));
}

// A stack that is asked for again and again stays, however many others come.
TEST(StackCacheTest, ForgetsWhatNobodyAsksFor) {
  constexpr size_t kMaxBytes = size_t{1} << 18;
  StackCache cache(kMaxBytes);
  for (uint64_t stack = 1; stack <= 10'000; ++stack) {
    const std::string name = "function " + std::to_string(stack);
    cache.Add(stack, std::vector<StackFrame>{{&kUserFrame, name, "/bin/a"}});
    ASSERT_LE(cache.memory_bytes(), kMaxBytes + 4096) << stack;
    ASSERT_EQ(NamesOf(cache, 1), "function 1 of /bin/a;") << stack;
  }
  EXPECT_EQ(NamesOf(cache, 2), "none");
  EXPECT_EQ(NamesOf(cache, 10'000), "function 10000 of /bin/a;");
}

// A stack that fills half of the room is there as long as it is the last one.
TEST(StackCacheTest, TakesWhatIsTooLarge) {
  StackCache cache(1000);
  const std::string name(5000, 'x');
  cache.Add(1, std::vector<StackFrame>{{&kUserFrame, name, ""}});
  EXPECT_EQ(NamesOf(cache, 1), name + " of ;");
  cache.Add(2, std::vector<StackFrame>{{&kUserFrame, name, ""}});
  EXPECT_EQ(NamesOf(cache, 2), name + " of ;");
}

}  // namespace
}  // namespace profd::fleet
