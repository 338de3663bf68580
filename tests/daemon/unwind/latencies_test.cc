// SPDX-License-Identifier: Apache-2.0
#include "daemon/unwind/latencies.h"

#include <gtest/gtest.h>

namespace profd {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;

// Both are 0 where there are none.
TEST(LatenciesTest, AreNoneAtFirst) {
  EXPECT_EQ(Latencies().Median(), milliseconds(0));
  EXPECT_EQ(Latencies().longest(), milliseconds(0));
}

// Half of them took no longer than the median; fractions are cut off.
TEST(LatenciesTest, HaveAMedian) {
  Latencies some;
  some.Add(milliseconds(30));
  EXPECT_EQ(some.Median(), milliseconds(30));
  some.Add(microseconds(10'999));
  EXPECT_EQ(some.Median(), milliseconds(10));
  some.Add(milliseconds(20));
  EXPECT_EQ(some.Median(), milliseconds(20));
  EXPECT_EQ(some.longest(), milliseconds(30));
}

// What is out of range counts at its ends.
TEST(LatenciesTest, AreBounded) {
  Latencies some;
  some.Add(-seconds(1));
  EXPECT_EQ(some.Median(), milliseconds(0));
  for (int i = 0; i < 3; ++i) some.Add(seconds(90));
  EXPECT_EQ(some.Median(), milliseconds(1000));
  EXPECT_EQ(some.longest(), seconds(90));
}

}  // namespace
}  // namespace profd
