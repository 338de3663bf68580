// SPDX-License-Identifier: Apache-2.0
#include "daemon/capture/fair_share.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>

namespace profd {
namespace {

constexpr uint64_t kAll = std::numeric_limits<uint64_t>::max();

// There is no limit while all that is wanted fits.
TEST(FairShareTest, LeavesAllThatFits) {
  EXPECT_EQ(FairShare({}, 0), kAll);
  EXPECT_EQ(FairShare({0, 0}, 0), kAll);
  EXPECT_EQ(FairShare({3, 1, 2}, 6), kAll);
}

// A small want is met; the rest is divided among the others.
TEST(FairShareTest, CutsTheLargest) {
  EXPECT_EQ(FairShare({3, 1, 2}, 5), 2u);
  EXPECT_EQ(FairShare({1000, 1, 2}, 13), 10u);
  EXPECT_EQ(FairShare({1000, 1000, 1}, 101), 50u);
  EXPECT_EQ(FairShare({5, 5, 5}, 14), 4u);
  EXPECT_EQ(FairShare({7}, 0), 0u);
}

// Sums of what is wanted do not overflow.
TEST(FairShareTest, TakesTheLargestNumbers) {
  EXPECT_EQ(FairShare({kAll, kAll}, 10), 5u);
  EXPECT_EQ(FairShare({kAll, kAll}, kAll), kAll / 2);
}

}  // namespace
}  // namespace profd
