// SPDX-License-Identifier: Apache-2.0
#include "daemon/profile/kind_select.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <string_view>
#include <utility>
#include <vector>

#include "daemon/profile/pprof_kind.h"

namespace profd {
namespace {

using testing::HasSubstr;

SampleKind Blocked() {
  return {.name = "blocked",
          .unit = "nanoseconds",
          .event = "sched_switch",
          .has_values = true};
}

// Samples of two kinds, the second with values.
Profile Mixed() {
  ProfileBuilder builder;
  const StringId comm = builder.Intern("app");
  builder.AddSample({.comm = comm, .pid = 1, .count = 5});
  builder.AddSample(
      {.comm = comm, .pid = 1, .kind = 1, .count = 2, .value = 900});
  builder.AddSample({.comm = comm, .pid = 2, .kind = 1, .count = 1});
  CaptureMetadata metadata;
  metadata.kinds = {EventKind("cpu-clock", 99, 0), Blocked()};
  return std::move(builder).Finish(std::move(metadata));
}

// Rates and the clock count CPU time, other events themselves.
TEST(SampleKindTest, EventsTellTheirUnit) {
  EXPECT_EQ(EventKind("cycles", 100, 0).name, "cpu");
  EXPECT_EQ(EventKind("cpu-clock", 0, 1000).unit, "nanoseconds");
  EXPECT_EQ(EventKind("page-faults", 0, 10).name, "page-faults");
  EXPECT_EQ(EventKind("page-faults", 0, 10).unit, "count");
  EXPECT_EQ(UnitsPerSample(EventKind("cycles", 100, 0)), 10'000'000u);
  EXPECT_EQ(UnitsPerSample(EventKind("page-faults", 0, 10)), 10u);
}

// A value that does not fit is the largest one instead of a wrong one.
TEST(SampleKindTest, ValuesDoNotWrap) {
  constexpr uint64_t kMax = std::numeric_limits<uint64_t>::max();
  EXPECT_EQ(ValueOf(EventKind("cycles", 0, 1000), 3, 7), 3000u);
  EXPECT_EQ(ValueOf(EventKind("cycles", 0, kMax), 2, 0), kMax);
  EXPECT_EQ(ValueOf(Blocked(), 3, 7), 7u);
  EXPECT_EQ(UnitsPerSample(Blocked()), 0u);
}

// Samples that differ in their kind alone stay two; equal ones add up counts
// and values.
TEST(SampleKindTest, KindsAreNotMerged) {
  ProfileBuilder builder;
  builder.AddSample({.pid = 1, .count = 1});
  builder.AddSample({.pid = 1, .kind = 1, .count = 1, .value = 5});
  builder.AddSample({.pid = 1, .kind = 1, .count = 2, .value = 6});
  EXPECT_EQ(builder.distinct_samples(), 2u);
  const Profile profile = std::move(builder).Finish({});
  EXPECT_EQ(profile.samples[1].count, 3u);
  EXPECT_EQ(profile.samples[1].value, 11u);
}

// The kind that is asked for comes first and the others behind it.
TEST(KindSelectTest, PutsAKindFirst) {
  Profile profile = Mixed();
  ASSERT_TRUE(ShowKind("blocked", profile));
  EXPECT_EQ(profile.metadata.kinds[0], Blocked());
  EXPECT_EQ(profile.metadata.kinds[1].name, "cpu");
  EXPECT_EQ(profile.samples[0].kind, 1);
  EXPECT_EQ(profile.samples[1].kind, 0);
  ASSERT_TRUE(ShowKind("", profile));
  EXPECT_EQ(profile.metadata.kinds[0], Blocked());
}

// A kind that is not there is refused with those that are.
TEST(KindSelectTest, NamesTheKindsThereAre) {
  Profile profile = Mixed();
  const auto shown = ShowKind("wall", profile);
  ASSERT_FALSE(shown);
  EXPECT_THAT(shown.error().message(), HasSubstr("cpu and blocked"));
}

// "samples" is the first kind of which samples are counted, wherever it stands;
// a kind of that name goes before it.
TEST(KindSelectTest, KnowsSamples) {
  Profile profile = Mixed();
  ASSERT_TRUE(ShowKind("blocked", profile));
  ASSERT_TRUE(ShowKind("samples", profile));
  EXPECT_EQ(profile.metadata.kinds[0].name, "cpu");
  std::vector<SampleKind> kinds = {Blocked()};
  EXPECT_FALSE(KnowsKind("samples", kinds));
  kinds.push_back(Blocked());
  kinds.back().name = "samples";
  EXPECT_EQ(PlaceOfKind("samples", kinds).value(), 1);
}

// One kind's samples are left; values become counts of their unit.
TEST(KindSelectTest, KeepsOneKind) {
  Profile profile = Mixed();
  KeepFirstKind(profile);
  ASSERT_EQ(profile.samples.size(), 1u);
  EXPECT_EQ(profile.samples[0].count, 5u);
  EXPECT_FALSE(HasSeveralValues(profile));

  profile = Mixed();
  ASSERT_TRUE(ShowKind("blocked", profile));
  KeepFirstKind(profile);
  ASSERT_EQ(profile.samples.size(), 1u);
  EXPECT_EQ(profile.samples[0].count, 900u);
  // It can be asked for again.
  KeepFirstKind(profile);
  EXPECT_EQ(profile.samples[0].count, 900u);
}

// What the numbers are called: amounts are no samples.
TEST(SampleKindTest, NamesItsUnit) {
  EXPECT_EQ(UnitName(EventKind("cpu-clock", 99, 0)), "samples");
  EXPECT_EQ(UnitName(EventKind("page-faults", 0, 10)), "samples");
  EXPECT_EQ(UnitName(Blocked()), "nanoseconds");
  SampleKind objects = Blocked();
  objects.name = "alloc_objects";
  objects.unit = "count";
  EXPECT_EQ(UnitName(objects), "alloc_objects");
}

// What a comment of pprof tells of a kind is read as it was written, whatever
// the names are.
TEST(PprofKindTest, CommentsTellKinds) {
  SampleKind odd = Blocked();
  odd.name = "a: every 3 of";
  odd.event = "b of c";
  for (const SampleKind& kind :
       {EventKind("cpu-clock", 99, 0), EventKind("page-faults", 0, 10),
        Blocked(), odd}) {
    const auto read = ParsePprofKindComment(PprofKindComment(kind), kind.name);
    ASSERT_TRUE(read) << PprofKindComment(kind);
    SampleKind expected = kind;
    expected.unit = {};
    EXPECT_EQ(*read, expected);
  }
  for (const std::string_view text :
       {"", "kind", "kind cpu", "kind cpu: ", "kind cpu: 99 Hz",
        "kind cpu: of x", "kind cpu: 0 Hz of x", "kind cpu: every 0 of x",
        "kind cpu: -1 Hz of x", "kind cpu: 99 kHz of x",
        "kind cpux: 99 Hz of x"}) {
    EXPECT_FALSE(ParsePprofKindComment(text, "cpu")) << text;
  }
}

}  // namespace
}  // namespace profd
