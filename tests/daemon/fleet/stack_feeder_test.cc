// SPDX-License-Identifier: Apache-2.0
#include "daemon/fleet/stack_feeder.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "daemon/history/range_profile.h"
#include "daemon/profile/profile.h"

namespace profd::fleet {
namespace {

const SampleKind kCpu = {
    .name = "cpu", .unit = "nanoseconds", .event = {}, .has_values = true};

// The profile that comes out of a feeder, and in how many parts.
struct Fed {
  Profile profile;
  uint64_t parts = 0;
};
template <typename Feed>
Fed FedBy(const Feed& feed) {
  history::RangeProfile range({}, size_t{1} << 30);
  StackFeeder feeder({.kind = kCpu, .from_unix_ns = 5, .known_ns = 70},
                     [&](const history::Tables& tables) {
                       auto added = range.Add(tables);
                       EXPECT_TRUE(added) << added.error().message();
                       return added;
                     });
  feed(feeder);
  EXPECT_TRUE(feeder.Finish());
  const uint64_t parts = range.coverage().parts;
  return {.profile = std::move(range).Finish(), .parts = parts};
}

std::vector<std::string> NamesOf(const Profile& profile, CallStackId stack) {
  std::vector<std::string> names;
  for (const FrameId frame : profile.Stack(stack)) {
    names.emplace_back(profile.String(profile.frames[frame].name));
  }
  return names;
}
using Names = std::vector<std::string>;

ProfileSample OnlySample(const Profile& profile) {
  EXPECT_EQ(profile.samples.size(), 1u);
  return profile.samples.empty() ? ProfileSample() : profile.samples.front();
}

// The database has frames from the root, of both sides; a profile has two
// stacks from the leaf.
TEST(StackFeederTest, TakesSidesApart) {
  const Fed fed = FedBy([](StackFeeder& feeder) {
    EXPECT_TRUE(feeder.Add(
        {.stack = 1, .command = "sh", .parked = true, .count = 3, .value = 30},
        std::vector<StackFrame>{{&kUserFrame, "main", "/bin/sh"},
                                {&kPythonFrame, "f", "a.py"},
                                {&kKernelFrame, "entry", "[kernel]"},
                                {&kWakerFrame, "other", ""},
                                {&kUserFrame, "wake", "/bin/b"}}));
  });
  const ProfileSample sample = OnlySample(fed.profile);
  EXPECT_EQ(fed.profile.String(sample.comm), "sh");
  EXPECT_TRUE(sample.parked);
  EXPECT_EQ(sample.count, 3u);
  EXPECT_EQ(sample.value, 30u);
  EXPECT_EQ(sample.user_state, StackState::kWhole);
  EXPECT_EQ(sample.kernel_state, StackState::kWhole);
  EXPECT_EQ(NamesOf(fed.profile, sample.user), (Names{"f", "main"}));
  EXPECT_EQ(NamesOf(fed.profile, sample.kernel),
            (Names{"wake", "other", "entry"}));
  EXPECT_EQ(fed.profile.accounting.taken, 3u);
  EXPECT_EQ(fed.profile.metadata.duration_ns, 70u);
}

TEST(StackFeederTest, MarksAreStates) {
  const auto state_of = [](std::vector<StackFrame> frames) {
    const Fed fed = FedBy([&](StackFeeder& feeder) {
      EXPECT_TRUE(feeder.Add({.stack = 1, .count = 1, .value = 1}, frames));
    });
    const ProfileSample sample = OnlySample(fed.profile);
    return std::pair(sample.user_state, sample.kernel_state);
  };
  const StackFrame user = {&kUserFrame, "main", "/bin/a"};
  const StackFrame kernel = {&kKernelFrame, "k", "[kernel]"};
  EXPECT_EQ(state_of({{nullptr, "[truncated: no-table]", ""}, user}),
            std::pair(StackState::kNoTable, StackState::kNone));
  EXPECT_EQ(state_of({{nullptr, "[truncated]", ""}, user, kernel}),
            std::pair(StackState::kTruncated, StackState::kWhole));
  EXPECT_EQ(state_of({{nullptr, "[Missed User Stack]", ""}, kernel}),
            std::pair(StackState::kFaulted, StackState::kWhole));
  EXPECT_EQ(state_of({user, {nullptr, "[Missed Kernel Stack]", ""}}),
            std::pair(StackState::kWhole, StackState::kFaulted));
  EXPECT_EQ(state_of({}), std::pair(StackState::kNone, StackState::kNone));
  // Not a word of ours: a frame that says so.
  EXPECT_EQ(state_of({{nullptr, "[who knows]", ""}, kernel}),
            std::pair(StackState::kWhole, StackState::kWhole));
}

// However many there are, the time is known once.
TEST(StackFeederTest, GivesBatches) {
  constexpr uint64_t kStacks = 3 * StackFeeder::kMaxBatchStacks + 1;
  const Fed fed = FedBy([](StackFeeder& feeder) {
    for (uint64_t i = 0; i < kStacks; ++i) {
      const std::string name = std::to_string(i);
      ASSERT_TRUE(
          feeder.Add({.stack = i, .count = 1, .value = 10},
                     std::vector<StackFrame>{{&kUserFrame, name, "/bin/a"}}));
    }
  });
  EXPECT_EQ(fed.parts, 4u);
  EXPECT_EQ(fed.profile.samples.size(), kStacks);
  EXPECT_EQ(fed.profile.accounting.emitted, kStacks);
  EXPECT_EQ(fed.profile.metadata.duration_ns, 70u);
}

TEST(StackFeederTest, GivesTheTimeOfNoStacks) {
  const Fed fed = FedBy([](StackFeeder&) {});
  EXPECT_EQ(fed.parts, 1u);
  EXPECT_TRUE(fed.profile.samples.empty());
  EXPECT_EQ(fed.profile.metadata.duration_ns, 70u);
}

TEST(StackFeederTest, SaysWhatIsNotShown) {
  const Fed fed = FedBy([](StackFeeder& feeder) {
    EXPECT_TRUE(feeder.AddUnshown(
        {.stack = 1, .command = "sh", .count = 7, .value = 70}));
  });
  const ProfileSample sample = OnlySample(fed.profile);
  EXPECT_EQ(sample.count, 7u);
  EXPECT_EQ(NamesOf(fed.profile, sample.user), Names{"[rare callees]"});
}

}  // namespace
}  // namespace profd::fleet
