// SPDX-License-Identifier: Apache-2.0
#include "daemon/profile/profile.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "daemon/profile/profile_terms.h"

namespace profd {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// Equal texts have one id, the empty text has 0, and views survive growth.
TEST(StringTableTest, InternsEachTextOnce) {
  StringTable table;
  EXPECT_EQ(table.Intern(""), 0u);
  const StringId first = table.Intern("main");
  const std::string_view view = table.Get(first);
  for (int i = 0; i < 10000; ++i) table.Intern("f" + std::to_string(i));
  EXPECT_EQ(table.Intern("main"), first);
  EXPECT_EQ(view.data(), table.Get(first).data());
  EXPECT_EQ(table.Get(table.Intern("f9999")), "f9999");
  EXPECT_EQ(table.size(), 10002u);
  EXPECT_NE(table.Intern(std::string_view("a\0b", 3)), table.Intern("a"));
}

// Views of a table that was moved stay, and those of a copy are its own.
TEST(StringTableTest, IsCopiedAndMoved) {
  StringTable table;
  const std::string large(5000, 'x');
  std::vector<StringId> ids;
  for (int i = 0; i < 1000; ++i) ids.push_back(table.Intern(std::to_string(i)));
  ids.push_back(table.Intern(large));
  ids.push_back(table.Intern("behind it"));
  const std::string_view view = table.Get(ids[500]);
  StringTable copy = table;
  EXPECT_NE(copy.Get(ids[500]).data(), view.data());
  const StringTable moved = std::move(table);
  EXPECT_EQ(moved.Get(ids[500]).data(), view.data());
  for (const StringId id : ids) EXPECT_EQ(copy.Get(id), moved.Get(id));
  EXPECT_EQ(copy.Intern("700"), ids[700]);
  const size_t size = copy.size();
  EXPECT_EQ(copy.Intern("new"), size);
  copy = moved;
  EXPECT_EQ(copy.size(), moved.size());
  EXPECT_EQ(copy.Get(0), "");
  EXPECT_EQ(copy.Get(ids[1000]), large);
}

// Equal stacks have one id; a prefix, the reverse and the empty one differ.
TEST(CallStackTableTest, InternsEachStackOnce) {
  CallStackTable table;
  const std::vector<FrameId> stack = {1, 2, 3};
  const std::vector<FrameId> prefix = {1, 2};
  const std::vector<FrameId> reverse = {3, 2, 1};
  const CallStackId id = table.Intern(stack);
  const std::set<CallStackId> ids = {0, id, table.Intern(prefix),
                                     table.Intern(reverse)};
  EXPECT_EQ(ids.size(), 4u);
  EXPECT_EQ(table.Intern(stack), id);
  EXPECT_EQ(table.Intern({}), 0u);
  EXPECT_THAT(table.Get(id), ElementsAre(1, 2, 3));
  EXPECT_THAT(table.Get(0), IsEmpty());
}

// Stacks of one part are taken as they come, but for the empty one.
TEST(ProfileBuilderTest, TakesOnePartAsItComes) {
  ProfileBuilder builder(ProfileBuilder::Parts::kOne);
  builder.Reserve({.samples = 2, .stacks = 2, .frames_of_stacks = 3});
  const std::vector<FrameId> stack = {2, 1};
  const CallStackId first = builder.AddStack(stack);
  const CallStackId second = builder.AddStack(stack);
  EXPECT_EQ(builder.AddStack({}), 0u);
  for (const CallStackId id : {first, second}) {
    builder.AddSample({.pid = 1, .user = id, .count = 3});
  }
  const Profile profile = std::move(builder).Finish(CaptureMetadata());
  EXPECT_EQ(profile.stacks.size(), 3u);
  EXPECT_THAT(profile.Stack(first), ElementsAre(2, 1));
  EXPECT_THAT(profile.Stack(second), ElementsAre(2, 1));
  ASSERT_EQ(profile.samples.size(), 2u);
  EXPECT_EQ(profile.samples[1].count, 3u);
}

// Samples that are equal in every part of their identity add up; a difference
// in any single part keeps them apart.
TEST(ProfileBuilderTest, MergesEqualSamplesOnly) {
  ProfileBuilder builder;
  const FrameId frame = builder.AddFrame({.name = builder.Intern("main")});
  const ProfileSample base = {.comm = builder.Intern("a"),
                              .pid = 1,
                              .user_state = StackState::kWhole,
                              .user = builder.AddStack({{frame}}),
                              .count = 2};
  std::vector<ProfileSample> others(9, base);
  others[0].comm = builder.Intern("b");
  others[1].pid = 2;
  others[2].tid = 1;
  others[3].user_state = StackState::kTruncated;
  others[4].kernel_state = StackState::kFaulted;
  others[5].user = 0;
  others[6].kernel = base.user;
  others[7].cgroup = builder.Intern("/a");
  others[8].labels = builder.AddLabels({{.key = "k", .value = "v"}});
  builder.AddSample(base);
  for (const ProfileSample& other : others) builder.AddSample(other);
  builder.AddSample(base);
  EXPECT_EQ(builder.distinct_samples(), 10u);
  CaptureMetadata metadata;
  metadata.version = "1";
  const Profile profile = std::move(builder).Finish(metadata);
  EXPECT_EQ(profile.samples[0].count, 4u);
  for (size_t i = 1; i < 10; ++i) EXPECT_EQ(profile.samples[i].count, 2u);
  EXPECT_EQ(profile.metadata.version, "1");
}

// Sets of labels are in the order of their keys; of equal keys the first value
// counts, within a set and of two that are merged.
TEST(LabelSetTest, IsInOrder) {
  LabelSet labels = {{.key = "b", .value = "1"},
                     {.key = "a", .value = "2"},
                     {.key = "b", .value = "3"}};
  Normalize(labels);
  EXPECT_EQ(labels,
            (LabelSet{{.key = "a", .value = "2"}, {.key = "b", .value = "1"}}));
  const LabelSet merged = MergeLabels(
      labels, {{.key = "a", .value = "4"}, {.key = "c", .value = "5"}});
  EXPECT_EQ(merged, (LabelSet{{.key = "a", .value = "2"},
                              {.key = "b", .value = "1"},
                              {.key = "c", .value = "5"}}));
  EXPECT_EQ(FindLabel(merged, "c"), "5");
  EXPECT_EQ(FindLabel(merged, "d"), "");
  EXPECT_EQ(FindLabel({}, "d"), "");
}

// Equal sets are one, and the empty one is number 0.
TEST(ProfileBuilderTest, InternsLabelSets) {
  ProfileBuilder builder;
  EXPECT_EQ(builder.AddLabels(LabelSet()), 0u);
  const LabelSetId one = builder.AddLabels({{.key = "k", .value = "v"}});
  const LabelSetId other = builder.AddLabels({{.key = "k", .value = "w"}});
  EXPECT_NE(one, other);
  EXPECT_EQ(builder.AddLabels({{.key = "k", .value = "v"}}), one);
}

// A difference in any field of a frame makes it another frame.
TEST(ProfileBuilderTest, InternsFrames) {
  ProfileBuilder builder;
  const Frame base = {.name = 1, .object = 2, .build_id = 3};
  std::vector<Frame> frames(9, base);
  frames[1].name = 9;
  frames[2].object = 9;
  frames[3].build_id = 9;
  frames[4].kind = &kKernelFrame;
  frames[5].reason = ksym::Unresolved::kGone;
  frames[6].address = 9;
  frames[7].file_offset = 9;
  frames[8].symbol_offset = 9;
  std::set<FrameId> ids;
  for (const Frame& frame : frames) ids.insert(builder.AddFrame(frame));
  EXPECT_EQ(ids.size(), frames.size());
  EXPECT_EQ(builder.AddFrame(base), 0u);
}

// Many stacks of the same frames in other orders all stay distinct.
TEST(ProfileBuilderTest, KeepsManyStacksApart) {
  ProfileBuilder builder;
  for (FrameId a = 0; a < 100; ++a) {
    for (FrameId b = 0; b < 100; ++b) {
      const CallStackId stack = builder.AddStack({{a, b}});
      builder.AddSample({.pid = 1, .user = stack, .count = 1});
      builder.AddSample({.pid = 1, .kernel = stack, .count = 1});
    }
  }
  EXPECT_EQ(builder.distinct_samples(), 20000u);
}

// Each cause has its own stable name.
TEST(AccountingTest, NamesEveryCause) {
  std::set<std::string_view> names;
  for (size_t i = 0; i < kLossCauses; ++i) {
    names.insert(Name(static_cast<LossCause>(i)));
  }
  for (size_t i = 0; i < kDamageCauses; ++i) {
    names.insert(Name(static_cast<DamageCause>(i)));
  }
  EXPECT_EQ(names.size(), kLossCauses + kDamageCauses);
  EXPECT_FALSE(names.contains("unknown"));
}

// Every field is summed.
TEST(AccountingTest, Adds) {
  const Accounting one = {.taken = 10,
                          .emitted = 4,
                          .lost_by_cause = {1, 2, 3},
                          .damaged_by_cause = {4, 5, 6},
                          .processes = {1, 2, 3},
                          .time_enabled_ns = 7,
                          .time_running_ns = 6};
  Accounting sum = one;
  sum += one;
  EXPECT_EQ(sum, (Accounting{.taken = 20,
                             .emitted = 8,
                             .lost_by_cause = {2, 4, 6},
                             .damaged_by_cause = {8, 10, 12},
                             .processes = {2, 4, 6},
                             .time_enabled_ns = 14,
                             .time_running_ns = 12}));
  EXPECT_EQ(sum.taken, sum.emitted + sum.lost());
}

// Each state is found by its name, which no other one has.
TEST(ProfileTermsTest, StatesHaveNames) {
  std::set<std::string_view> names;
  for (const StackState state :
       {StackState::kNone, StackState::kWhole, StackState::kTruncated,
        StackState::kBroken, StackState::kFaulted, StackState::kCollided}) {
    EXPECT_EQ(StackStateNamed(Name(state)), state);
    names.insert(Name(state));
  }
  EXPECT_EQ(names.size(), 6u);
  EXPECT_EQ(StackStateNamed("Whole"), std::nullopt);
}

// Each end that breaks a stack has a state of its own, whose mark has its name.
TEST(ProfileTermsTest, BrokenStacksHaveCauses) {
  for (size_t i = 0; i < kStackEnds; ++i) {
    const auto end = static_cast<StackEnd>(i);
    const StackState state = StateOf(end);
    EXPECT_EQ(Name(state) == "broken", IsBroken(end)) << Name(end);
    if (IsBroken(end)) {
      EXPECT_EQ(CauseOf(state), end);
    } else {
      EXPECT_EQ(CauseOf(state), std::nullopt);
    }
  }
  EXPECT_EQ(StateOf(StackEnd::kDepthLimit), StackState::kTruncated);
}

// A sample is worth its share of a second; events of other units are worth no
// time.
TEST(ProfileTermsTest, NanosecondsPerSample) {
  CaptureMetadata metadata;
  metadata.kinds = {EventKind("cycles", 0, 1000)};
  EXPECT_EQ(NanosecondsPerSample(metadata), std::nullopt);
  metadata.kinds = {EventKind("cpu-clock:u", 0, 1000)};
  EXPECT_EQ(NanosecondsPerSample(metadata), 1000u);
  metadata.kinds = {EventKind("cycles", 100, 0)};
  EXPECT_EQ(NanosecondsPerSample(metadata), 10'000'000u);
  metadata.kinds = {EventKind("cycles", 0, 0)};
  EXPECT_EQ(NanosecondsPerSample(metadata), std::nullopt);
}

}  // namespace
}  // namespace profd
