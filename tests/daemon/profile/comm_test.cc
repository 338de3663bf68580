// SPDX-License-Identifier: Apache-2.0
#include "daemon/profile/comm.h"

#include <gtest/gtest.h>

#include <string_view>

namespace profd {
namespace {

TEST(CommTest, HoldsWhatTheKernelHolds) {
  EXPECT_EQ(Comm().view(), "");
  EXPECT_EQ(Comm("a").view(), "a");
  EXPECT_EQ(Comm("fifteen bytes..").view(), "fifteen bytes..");
  EXPECT_EQ(Comm("sixteen bytes...").view(), "sixteen bytes..");
  EXPECT_EQ(Comm(std::string_view("ab\0c", 4)).view(), "ab");
}

// What lies behind the NUL takes no part.
TEST(CommTest, ComparesAsTexts) {
  EXPECT_EQ(Comm("a"), Comm(std::string_view("a\0b", 3)));
  EXPECT_NE(Comm("a"), Comm("ab"));
  EXPECT_LT(Comm("a"), Comm("ab"));
  EXPECT_LT(Comm("ab"), Comm("b"));
  EXPECT_LT(Comm("z"), Comm("\xff"));
}

}  // namespace
}  // namespace profd
