// SPDX-License-Identifier: Apache-2.0
#include "daemon/output/profile_select.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "daemon/output/hot_spots.h"
#include "daemon/output/summary.h"
#include "tests/daemon/output/test_profile.h"

namespace profd {
namespace {

using ::testing::HasSubstr;

Profile Matching(const std::string& pattern, Profile profile) {
  auto parsed = NamePattern::Parse(pattern);
  EXPECT_TRUE(parsed.has_value());
  KeepMatching(*parsed, profile);
  return profile;
}

Profile Sorting() {
  TestProfile p;
  const auto main = p.User("main");
  const auto sort = p.User("ns::Sort<int>(char*) const");
  const auto swap = p.User("swap");
  p.Add({.comm = "one", .user = {swap, sort, sort, main}, .count = 4});
  p.Add({.comm = "one", .user = {sort, p.User("Other"), main}, .count = 2});
  p.Add({.comm = "two", .user = {main}, .kernel = {p.Kernel("read")}});
  p.Add({.comm = "bare", .user = {sort}});
  return std::move(p).Finish();
}

// A sample is kept for a frame on either side or its command.
TEST(ProfileSelectTest, KeepsWhatMatches) {
  EXPECT_EQ(SamplesOf(Matching("^Sort", Sorting())), 0u);
  EXPECT_EQ(SamplesOf(Matching("Sort|read", Sorting())), 8u);
  EXPECT_EQ(SamplesOf(Matching("^read$", Sorting())), 1u);
  EXPECT_EQ(SamplesOf(Matching("^one$", Sorting())), 6u);
}

// An expression that is none says what is wrong with it.
TEST(ProfileSelectTest, RefusesBadPatterns) {
  const auto bad = NamePattern::Parse("a(b");
  ASSERT_FALSE(bad.has_value());
  EXPECT_THAT(bad.error().message(), HasSubstr("'a(b': "));
}

// What is left are callers: of a recursion those of its first call, with the
// time of all that the function called; a name needs no arguments.
TEST(ProfileSelectTest, KeepsCallers) {
  for (const char* name : {"ns::Sort", "ns::Sort<int>(char*) const"}) {
    Profile profile = Sorting();
    KeepCallers(name, profile);
    const auto spots = FindHotSpots(profile, SpotKind::kFunction);
    ASSERT_EQ(spots.size(), 3u) << name;
    EXPECT_EQ(spots[0].name, "main [app]");
    EXPECT_EQ(spots[0].self, 4u);
    EXPECT_EQ(spots[0].total, 6u);
    EXPECT_EQ(spots[1].name, "Other [app]");
    EXPECT_EQ(spots[1].self, 2u);
    EXPECT_EQ(spots[2].name, "[no caller]");
    EXPECT_EQ(spots[2].self, 1u);
  }
}

// The kernel's functions have callers in the program.
TEST(ProfileSelectTest, FindsCallersOfTheKernel) {
  Profile profile = Sorting();
  KeepCallers("read", profile);
  const auto spots = FindHotSpots(profile, SpotKind::kFunction);
  ASSERT_EQ(spots.size(), 1u);
  EXPECT_EQ(spots[0].name, "main [app]");
  Profile none = Sorting();
  KeepCallers("missing", none);
  EXPECT_TRUE(none.samples.empty());
}

}  // namespace
}  // namespace profd
