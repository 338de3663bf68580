// SPDX-License-Identifier: Apache-2.0
#include "daemon/clickhouse/sent_stacks.h"

#include <gtest/gtest.h>

#include "daemon/clickhouse/run_name.h"

namespace profd::clickhouse {
namespace {

constexpr uint64_t kSecond = 1'000'000'000;

// Those of one day, until they are forgotten.
TEST(SentStacksTest, KnowsADay) {
  SentStacks sent;
  EXPECT_FALSE(sent.Has(1, 7));
  sent.Add(1, 7);
  EXPECT_TRUE(sent.Has(1, 7));
  EXPECT_FALSE(sent.Has(1, 8));
  sent.Clear();
  EXPECT_FALSE(sent.Has(1, 7));
  sent.Add(1, 7);
  EXPECT_FALSE(sent.Has(2, 7));
  EXPECT_FALSE(sent.Has(1, 7)) << "of a day that another one followed";
  // The 0 of an empty place is no stack.
  EXPECT_FALSE(sent.Has(1, 0));
}

// The ones used last stay where many share a place.
TEST(SentStacksTest, KeepsWhatIsUsed) {
  SentStacks sent;
  const auto number = [](uint64_t i) { return 5 + i * SentStacks::kSets; };
  for (uint64_t i = 0; i < SentStacks::kWays; ++i) sent.Add(1, number(i));
  EXPECT_TRUE(sent.Has(1, number(0)));
  sent.Add(1, number(99));
  EXPECT_TRUE(sent.Has(1, number(0)));
  EXPECT_TRUE(sent.Has(1, number(99)));
  EXPECT_FALSE(sent.Has(1, number(1)));
  EXPECT_TRUE(sent.Has(1, number(2)));
}

// One for all intervals that begin one after the other, another one where the
// clock went back, or two began within a second.
TEST(RunNameTest, ChangesWhereTheClockGoesBack) {
  RunName run;
  const std::string first = run.Next(100 * kSecond);
  EXPECT_EQ(first.size(), 16u);
  EXPECT_EQ(first.find_first_not_of("0123456789abcdef"), std::string::npos);
  EXPECT_EQ(run.Next(101 * kSecond), first);
  const std::string second = run.Next(101 * kSecond + kSecond / 2);
  EXPECT_NE(second, first);
  EXPECT_EQ(run.Next(102 * kSecond), second);
  const std::string third = run.Next(50 * kSecond);
  EXPECT_NE(third, second);
  EXPECT_EQ(run.Next(51 * kSecond), third);
  EXPECT_NE(RunName().Next(1), RunName().Next(1));
}

}  // namespace
}  // namespace profd::clickhouse
