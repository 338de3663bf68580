// SPDX-License-Identifier: Apache-2.0
#include "daemon/output/hot_spots.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "tests/daemon/output/test_profile.h"

namespace profd {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::string Table(const Profile& profile, const HotSpotTable& table) {
  std::string text;
  OutputBuffer out([&](std::string_view piece) {
    text += piece;
    return ksym::Status();
  });
  WriteHotSpots(profile, table, out);
  EXPECT_TRUE(out.Finish().has_value());
  return text;
}

// main calls fib, which calls itself; the kernel works for it now and then.
Profile Recursive(uint64_t kernel_samples) {
  TestProfile p;
  const auto main = p.User("main");
  const auto fib = p.Placed("fib", "/src/fib.c", 7);
  p.Add({.user = {fib, fib, fib, main}, .count = 6});
  p.Add({.user = {main}, .count = 2});
  p.Add({.user = {fib, main},
         .kernel = {p.Kernel("vfs_read")},
         .count = kernel_samples});
  return std::move(p).Finish();
}

// A recursive function is in a sample once; what a system call costs is the
// kernel's own and its caller's total.
TEST(HotSpotsTest, CountsSelfAndTotal) {
  const auto spots = FindHotSpots(Recursive(2), SpotKind::kFunction);
  ASSERT_EQ(spots.size(), 3u);
  EXPECT_EQ(spots[0].name, "fib [app]");
  EXPECT_EQ(spots[0].self, 6u);
  EXPECT_EQ(spots[0].total, 8u);
  EXPECT_EQ(spots[1].name, "main [app]");
  EXPECT_EQ(spots[1].self, 2u);
  EXPECT_EQ(spots[1].total, 10u);
  EXPECT_EQ(spots[2].name, "vfs_read [kernel]");
  EXPECT_EQ(spots[2].self, 2u);
  EXPECT_EQ(spots[2].total, 2u);
}

// Samples are added up by file, process and line as well, and none is missing.
TEST(HotSpotsTest, AddsUpByEachKind) {
  const Profile profile = Recursive(2);
  EXPECT_EQ(FindHotSpots(profile, SpotKind::kModule)[0].name, "/bin/app");
  EXPECT_EQ(FindHotSpots(profile, SpotKind::kComm)[0].name, "app");
  EXPECT_EQ(FindHotSpots(profile, SpotKind::kModule)[0].self, 8u);
  EXPECT_EQ(FindHotSpots(profile, SpotKind::kProcess)[0].name, "app (7)");
  EXPECT_EQ(FindHotSpots(profile, SpotKind::kLine)[0].name, "/src/fib.c:7");
  for (const char* name : {"function", "module", "process", "line"}) {
    uint64_t sum = 0;
    for (const HotSpot& spot : FindHotSpots(profile, *ParseSpotKind(name))) {
      sum += spot.self;
    }
    EXPECT_EQ(sum, 10u) << name;
  }
  EXPECT_FALSE(ParseSpotKind("thread").has_value());
  TestProfile unknown;
  unknown.Add({.pid = 0, .user = {unknown.User("main")}});
  EXPECT_EQ(
      FindHotSpots(std::move(unknown).Finish(), SpotKind::kProcess)[0].name,
      "app");
}

// The table says how many rows it leaves out, and is plain text unless asked.
TEST(HotSpotsTest, WritesATable) {
  const std::string text = Table(Recursive(2), {.top = 1});
  EXPECT_THAT(text, HasSubstr("cpu-clock at 99 Hz for 10.0 s on host"));
  EXPECT_THAT(text,
              HasSubstr("  60.00   80.00          6          8  fib [app]\n"));
  EXPECT_THAT(text, HasSubstr("and 2 more"));
  EXPECT_THAT(text, Not(HasSubstr("\x1b")));
  EXPECT_THAT(Table(Recursive(2), {.colours = Colours::kOn}),
              HasSubstr("\x1b[1;31m"));
}

// Two profiles are compared by the CPUs that each spot used, so that a longer
// capture is not a change.
TEST(HotSpotsTest, ComparesByTime) {
  Profile twice_as_long = Recursive(2);
  for (ProfileSample& sample : twice_as_long.samples) sample.count *= 2;
  twice_as_long.metadata.duration_ns *= 2;
  EXPECT_TRUE(
      Compare(Recursive(2), twice_as_long, SpotKind::kFunction).spots.empty());

  const Difference slower =
      Compare(Recursive(2), Recursive(22), SpotKind::kFunction);
  EXPECT_EQ(slower.unit, MeasureUnit::kCpus);
  ASSERT_EQ(slower.spots.size(), 1u);
  EXPECT_EQ(slower.spots[0].name, "vfs_read [kernel]");
  EXPECT_NEAR(slower.spots[0].change(), 20 / (99 * 10.0), 1e-9);
}

// Two commands are compared by the CPU time that they took as a whole: one that
// ends sooner with the same work is as fast.
TEST(HotSpotsTest, ComparesCommandsByCpuSeconds) {
  Profile before = Recursive(2);
  before.metadata.command = "make";
  Profile after = before;
  after.metadata.duration_ns /= 4;
  EXPECT_TRUE(Compare(before, after, SpotKind::kFunction).spots.empty());
  for (ProfileSample& sample : after.samples) sample.count *= 3;
  const Difference slower = Compare(before, after, SpotKind::kComm);
  EXPECT_EQ(slower.unit, MeasureUnit::kCpuSeconds);
  EXPECT_NEAR(slower.before, 10 / 99.0, 1e-6);
  EXPECT_NEAR(slower.after, 30 / 99.0, 1e-6);
  Profile machine = before;
  machine.metadata.command = "";
  EXPECT_EQ(Compare(before, machine, SpotKind::kComm).unit, MeasureUnit::kCpus);
}

// A change of two deviations and less is within the error, comes last, and is
// grey and marked.
TEST(HotSpotsTest, MarksWhatMayBeChance) {
  const auto profile = [](uint64_t one, uint64_t two) {
    TestProfile p;
    p.Add({.user = {p.User("one")}, .count = one});
    p.Add({.user = {p.User("two")}, .count = two});
    return std::move(p).Finish();
  };
  // 100 and 131 differ by 31, and twice the root of 231 is 30.4.
  const Difference difference =
      Compare(profile(100, 10'000), profile(131, 10'200), SpotKind::kFunction);
  ASSERT_EQ(difference.spots.size(), 2u);
  EXPECT_EQ(difference.spots[0].name, "one [app]");
  EXPECT_FALSE(difference.spots[0].is_within_error);
  EXPECT_EQ(difference.spots[1].name, "two [app]");
  EXPECT_TRUE(difference.spots[1].is_within_error);
  EXPECT_TRUE(Compare(profile(100, 1), profile(130, 1), SpotKind::kFunction)
                  .spots.at(0)
                  .is_within_error);
  std::string text;
  OutputBuffer out([&](std::string_view piece) {
    text += piece;
    return ksym::Status();
  });
  WriteDifference(difference, {.colours = Colours::kOn}, out);
  ASSERT_TRUE(out.Finish().has_value());
  EXPECT_THAT(text, HasSubstr("   one [app]"));
  EXPECT_THAT(text, HasSubstr(" ~ two [app]\x1b[0m"));
  EXPECT_THAT(text, HasSubstr("\x1b[90m"));
  EXPECT_THAT(text, HasSubstr("~ is within the sampling error"));
}

// Names are shortened to the width of the line, numbers never.
TEST(HotSpotsTest, FitsTheWidth) {
  TestProfile p;
  p.Add({.user = {p.User("ns::A<int, long>::Run(char const*, int, long)")}});
  const Profile profile = std::move(p).Finish();
  const std::string text = Table(profile, {.columns = 60});
  EXPECT_THAT(text, HasSubstr("ns::A<>::Run() [app]\n"));
  EXPECT_THAT(Table(profile, {}), HasSubstr("char const*, int, long) [app]\n"));
  EXPECT_THAT(Table(profile, {.columns = 10}),
              HasSubstr("          1          1  ..>::Run() [app]\n"));
}

// Where a profile does not say its files, functions are compared without.
TEST(HotSpotsTest, ComparesWithoutModules) {
  Profile folded = Recursive(2);
  for (Frame& frame : folded.frames) frame.object = 0;
  folded.metadata.duration_ns = 0;
  const Difference none = Compare(Recursive(2), folded, SpotKind::kFunction);
  EXPECT_EQ(none.unit, MeasureUnit::kShares);
  EXPECT_TRUE(none.spots.empty());
}

}  // namespace
}  // namespace profd
