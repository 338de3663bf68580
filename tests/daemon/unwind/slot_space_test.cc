// SPDX-License-Identifier: Apache-2.0
#include "daemon/unwind/slot_space.h"

#include <gtest/gtest.h>

namespace profd {
namespace {

// All slots can be taken, none twice, and one more cannot.
TEST(SlotSpaceTest, HandsOutEverySlotOnce) {
  SlotSpace space(10);
  EXPECT_EQ(space.Take(4), 0u);
  EXPECT_EQ(space.Take(6), 4u);
  EXPECT_EQ(space.Take(1), std::nullopt);
}

// What is freed waits for Recycle(), and neighbours join again.
TEST(SlotSpaceTest, ReusesAfterRecycling) {
  SlotSpace space(10);
  const auto a = space.Take(3);
  const auto b = space.Take(3);
  const auto c = space.Take(4);
  ASSERT_TRUE(a && b && c);
  space.Free(*b, 3);
  EXPECT_EQ(space.Take(1), std::nullopt);
  space.Recycle();
  EXPECT_EQ(space.Take(4), std::nullopt);
  space.Free(*a, 3);
  space.Free(*c, 4);
  space.Recycle();
  EXPECT_EQ(space.Take(10), 0u);
}

// What was never used need not wait.
TEST(SlotSpaceTest, TakesBackAtOnce) {
  SlotSpace space(10);
  const auto a = space.Take(10);
  ASSERT_TRUE(a);
  space.Return(*a, 10);
  EXPECT_EQ(space.Take(10), 0u);
}

// Without slots there are none.
TEST(SlotSpaceTest, MayBeEmpty) {
  EXPECT_EQ(SlotSpace(0).Take(1), std::nullopt);
}

}  // namespace
}  // namespace profd
