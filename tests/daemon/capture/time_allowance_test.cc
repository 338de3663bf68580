// SPDX-License-Identifier: Apache-2.0
#include "daemon/capture/time_allowance.h"

#include <gtest/gtest.h>

#include <chrono>

namespace profd {
namespace {

using std::chrono::milliseconds;

TEST(TimeAllowanceTest, ComesBackWithTime) {
  const SteadyClock::time_point begin{};
  TimeAllowance time(milliseconds(100), 0.1, begin);
  EXPECT_TRUE(time.HasAny(begin));
  // More than there is has to come back first.
  time.Spend(milliseconds(150));
  EXPECT_FALSE(time.HasAny(begin));
  EXPECT_FALSE(time.HasAny(begin + milliseconds(400)));
  EXPECT_TRUE(time.HasAny(begin + milliseconds(600)));
  // No more than it was at first.
  EXPECT_TRUE(time.HasAny(begin + milliseconds(1000000)));
  time.Spend(milliseconds(101));
  EXPECT_FALSE(time.HasAny(begin + milliseconds(1000000)));
}

}  // namespace
}  // namespace profd
