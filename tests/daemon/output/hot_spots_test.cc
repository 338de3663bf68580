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
  EXPECT_TRUE(slower.in_cpus);
  ASSERT_EQ(slower.spots.size(), 1u);
  EXPECT_EQ(slower.spots[0].name, "vfs_read [kernel]");
  EXPECT_NEAR(slower.spots[0].change(), 20 / (99 * 10.0), 1e-9);
}

// Where a profile does not say its files, functions are compared without.
TEST(HotSpotsTest, ComparesWithoutModules) {
  Profile folded = Recursive(2);
  for (Frame& frame : folded.frames) frame.module = 0;
  folded.metadata.duration_ns = 0;
  const Difference none = Compare(Recursive(2), folded, SpotKind::kFunction);
  EXPECT_FALSE(none.in_cpus);
  EXPECT_TRUE(none.spots.empty());
}

}  // namespace
}  // namespace profd
