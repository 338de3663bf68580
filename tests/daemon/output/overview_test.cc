// SPDX-License-Identifier: Apache-2.0
#include "daemon/output/overview.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "daemon/output/text_columns.h"
#include "tests/daemon/output/test_profile.h"

namespace profd {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::vector<std::string> Lines(const Profile& profile,
                               const OverviewOptions& options) {
  std::string text;
  OutputBuffer out([&](std::string_view piece) {
    text += piece;
    return ksym::Status();
  });
  WriteOverview(profile, options, out);
  EXPECT_TRUE(out.Finish().has_value());
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

// One function in two commands, recursive in one of them.
Profile TwoCommands() {
  TestProfile p;
  const auto main = p.User("main");
  const auto sort = p.User("sort", "/usr/lib/libsort.so.1");
  p.Add({.comm = "one", .user = {sort, sort, main}, .count = 6});
  p.Add({.comm = "two", .user = {sort, main}, .count = 2});
  p.Add({.comm = "two", .user = {main}, .count = 1});
  p.Add({.comm = "idle", .count = 1});
  return std::move(p).Finish();
}

// Shares of all samples, the hottest first, with the command that spent most
// there and how many others did; samples without a frame are a command's.
TEST(OverviewTest, HasCommandsAndFunctions) {
  const auto lines = Lines(TwoCommands(), {});
  ASSERT_EQ(lines.size(), 5u);
  EXPECT_THAT(lines[0], HasSubstr("10 samples, 0 lost"));
  EXPECT_EQ(lines[1], "by command: one 60.0 %, two 30.0 %, idle 10.0 %");
  EXPECT_EQ(lines[2], "  self   total  function  module        command");
  EXPECT_EQ(lines[3], " 80.0%   80.0%  sort      libsort.so.1  one +1");
  EXPECT_EQ(lines[4], " 10.0%   90.0%  main      app           two +1");
}

// By process a command has its pid, and by thread its tid.
TEST(OverviewTest, NamesCommandsByTheirKind) {
  TestProfile p;
  p.Add({.pid = 7, .tid = 9, .user = {p.User("main")}});
  const Profile profile = std::move(p).Finish();
  EXPECT_THAT(Lines(profile, {.by = OutputOptions::By::kPid}).at(1),
              HasSubstr("app (7) 100.0 %"));
  EXPECT_THAT(Lines(profile, {.by = OutputOptions::By::kTid}).at(3),
              HasSubstr("app (9)"));
}

// No line is wider than it may be, whatever the names are.
TEST(OverviewTest, FitsTheWidth) {
  TestProfile p;
  const std::string longer(300, 'x');
  for (int i = 0; i < 9; ++i) {
    const std::string text = longer + std::to_string(i);
    p.Add({.comm = text,
           .user = {p.User(text, "/lib/" + text), p.User("\u6f22" + text)}});
  }
  const Profile profile = std::move(p).Finish();
  for (const size_t columns : {40u, 80u, 81u, 200u}) {
    for (const std::string& line : Lines(profile, {.columns = columns})) {
      EXPECT_LE(ColumnsOf(line), columns) << line;
    }
  }
  EXPECT_THAT(Lines(profile, {.columns = 2000})[3], HasSubstr(longer));
}

// What is left out is counted; only hot lines are coloured, if any.
TEST(OverviewTest, LeavesOutTheRest) {
  TestProfile p;
  p.Add({.user = {p.User("hot")}, .count = 99});
  p.Add({.user = {p.User("cold")}, .count = 1});
  const Profile profile = std::move(p).Finish();
  const auto lines = Lines(profile, {.functions = 1, .colours = Colours::kOn});
  EXPECT_THAT(lines.at(3), HasSubstr("\x1b[1;31m"));
  EXPECT_EQ(lines.at(4), "... and 1 more functions");
  EXPECT_THAT(Lines(profile, {.colours = Colours::kOn}).at(4),
              Not(HasSubstr("\x1b")));
  EXPECT_THAT(Lines(profile, {}).at(3), Not(HasSubstr("\x1b")));
}

// A profile without samples has its first line only.
TEST(OverviewTest, HasNothingToShow) {
  EXPECT_EQ(Lines(Profile(), {}).size(), 1u);
}

}  // namespace
}  // namespace profd
