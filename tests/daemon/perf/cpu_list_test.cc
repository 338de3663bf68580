// SPDX-License-Identifier: Apache-2.0
#include "daemon/perf/cpu_list.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace profd {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// The kernel's list format comes back as numbers, sorted and each once.
TEST(CpuListTest, ParsesListsAndRanges) {
  EXPECT_THAT(*ParseCpuList("0"), ElementsAre(0));
  EXPECT_THAT(*ParseCpuList("0-3,8\n"), ElementsAre(0, 1, 2, 3, 8));
  EXPECT_THAT(*ParseCpuList("5,1-2,2"), ElementsAre(1, 2, 5));
  EXPECT_THAT(*ParseCpuList("7-7"), ElementsAre(7));
  EXPECT_THAT(*ParseCpuList("65535"), ElementsAre(65535));
}

// Anything else is refused, and the message names the part.
TEST(CpuListTest, RefusesEverythingElse) {
  for (const char* text : {"", "\n", "a", "1-", "-1", "3-1", "1,,2", "1,", " 1",
                           "1-2-3", "65536", "0-4000000000", "+1", "0x1"}) {
    EXPECT_FALSE(ParseCpuList(text)) << "'" << text << "'";
  }
  EXPECT_THAT(ParseCpuList("0,3-1").error().message(), HasSubstr("'3-1'"));
}

// Formatting is the inverse, with the longest ranges.
TEST(CpuListTest, FormatsWithRanges) {
  EXPECT_EQ(FormatCpuList({}), "");
  EXPECT_EQ(FormatCpuList({4}), "4");
  EXPECT_EQ(FormatCpuList({0, 1, 2, 5, 7, 8}), "0-2,5,7-8");
}

// Only members of both lists are left.
TEST(CpuListTest, Intersects) {
  EXPECT_THAT(Intersect({0, 2, 4, 6}, {1, 2, 3, 6}), ElementsAre(2, 6));
  EXPECT_THAT(Intersect({0}, {1}), ElementsAre());
}

// This machine has at least one CPU online.
TEST(CpuListTest, ReadsTheOnlineCpus) {
  const auto online = ReadOnlineCpus();
  ASSERT_TRUE(online) << online.error().message();
  EXPECT_FALSE(online->empty());
}

}  // namespace
}  // namespace profd
