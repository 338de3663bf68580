// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "daemon/history/flame_adder.h"
#include "daemon/history/range_profile.h"
#include "daemon/output/flame_tree.h"
#include "tests/daemon/history/sample_parts.h"

namespace profd::history {
namespace {

using testing::Contains;
using testing::Pair;

constexpr size_t kRoomOfFlame = size_t{64} << 20;

Profile FlameOf(const std::vector<Tables>& files, size_t nodes,
                Selection selection = {}) {
  FlameAdder adder(std::move(selection), kRoomOfFlame);
  for (const Tables& file : files) {
    const auto added = adder.Add(file);
    EXPECT_TRUE(added) << added.error().message();
  }
  return std::move(adder).Finish(nodes);
}

// The stacks that a flame graph shows, as texts, with their samples.
std::map<std::string, uint64_t> StacksOf(const Profile& profile) {
  const FlameTree tree(profile);
  std::map<std::string, uint64_t> stacks;
  for (const FlameTree::Leaf& leaf : tree.leaves()) {
    std::string text;
    for (uint32_t at = leaf.node; at != 0; at = tree.nodes()[at].parent) {
      text = tree.frames()[tree.nodes()[at].frame].name + ";" + text;
    }
    stacks[text] += leaf.count;
  }
  return stacks;
}

uint64_t SumOf(const std::map<std::string, uint64_t>& stacks) {
  uint64_t sum = 0;
  for (const auto& [text, count] : stacks) sum += count;
  return sum;
}

TEST(FlameAdder, ShowsWhatAProfileShows) {
  const std::vector<Tables> files = {TablesOf({PartNumber(0), PartNumber(1)}),
                                     TablesOf({PartNumber(2)})};
  RangeProfile range({}, kRoomOfFlame);
  for (const Tables& file : files) ASSERT_TRUE(range.Add(file));
  const Profile whole = std::move(range).Finish();
  const Profile flame = FlameOf(files, 1000);
  EXPECT_EQ(StacksOf(flame), StacksOf(whole));
  EXPECT_EQ(flame.metadata.kinds, whole.metadata.kinds);
  EXPECT_EQ(flame.metadata.duration_ns, whole.metadata.duration_ns);
  EXPECT_EQ(flame.accounting.taken, whole.accounting.taken);
  EXPECT_EQ(flame.accounting.lost(), whole.accounting.lost());
  EXPECT_TRUE(flame.metadata.warnings.empty());
}

TEST(FlameAdder, Filters) {
  const Profile flame = FlameOf({TablesOf({PartNumber(0), PartNumber(1)})},
                                1000, {.unit = "nginx"});
  EXPECT_EQ(SumOf(StacksOf(flame)), 24u);
  EXPECT_EQ(flame.accounting.emitted, 24u);
  EXPECT_EQ(flame.accounting.damaged_by_cause[2], 4u);
  const Profile python = FlameOf({TablesOf({PartNumber(0), PartNumber(1)})},
                                 1000, {.command = "python3"});
  EXPECT_EQ(python.accounting.damaged_by_cause[2], 0u);
}

TEST(FlameAdder, AddsRatesUpAsTime) {
  const Profile flame =
      FlameOf({TablesOf({PartNumber(0, 10), PartNumber(1, 100)})}, 1000);
  ASSERT_EQ(flame.metadata.kinds.size(), 1u);
  EXPECT_TRUE(flame.metadata.kinds[0].has_values);
  uint64_t value = 0;
  for (const ProfileSample& sample : flame.samples) value += sample.value;
  EXPECT_EQ(value, 15 * kSecond / 10 + 15 * kSecond / 100);
}

TEST(FlameAdder, PutsRareCalleesTogether) {
  std::vector<Profile> parts;
  for (unsigned i = 0; i < 200; ++i) parts.push_back(PartNumber(i));
  const Profile flame = FlameOf({TablesOf(parts)}, 9);
  const auto stacks = StacksOf(flame);
  // Nothing is lost, and what is common is as it was.
  EXPECT_EQ(SumOf(stacks), 200u * 15);
  EXPECT_THAT(stacks, Contains(Pair("nginx;main;serve;vfs_read;", 2000u)));
  EXPECT_THAT(stacks,
              Contains(Pair("nginx;[truncated];main;[rare callees];", 400u)));
  EXPECT_LE(FlameTree(flame).nodes().size(), 19u);
  EXPECT_FALSE(flame.metadata.warnings.empty());
}

TEST(FlameAdder, HoldsItsBoundWhileFilesCome) {
  // Each file has other functions; together they are more than is kept.
  FlameAdder adder({}, 4 * kRoomOfFlame);
  uint64_t samples = 0;
  for (unsigned file = 0; file < 4; ++file) {
    ProfileBuilder builder;
    const FrameId main =
        builder.AddFrame({.name = builder.Intern("main"), .kind = &kUserFrame});
    constexpr unsigned kStacks = 180'000;
    for (unsigned i = 0; i < kStacks; ++i) {
      const FrameId rare = builder.AddFrame(
          {.name = builder.Intern("f" + std::to_string(file * kStacks + i)),
           .kind = &kUserFrame});
      builder.AddSample({.comm = builder.Intern("app"),
                         .user_state = StackState::kWhole,
                         .user = builder.AddStack(std::vector{rare, main}),
                         .count = 1});
    }
    builder.Add({.taken = kStacks, .emitted = kStacks});
    samples += kStacks;
    CaptureMetadata metadata;
    metadata.kinds = {EventKind("cpu-clock", 10, 0)};
    metadata.start_unix_ns = kFirstPart + file * kSecond;
    metadata.duration_ns = kSecond;
    const auto added =
        adder.Add(TablesOf({std::move(builder).Finish(std::move(metadata))}));
    ASSERT_TRUE(added) << added.error().message();
  }
  const Profile flame = std::move(adder).Finish(100);
  const auto stacks = StacksOf(flame);
  EXPECT_EQ(SumOf(stacks), samples);
  EXPECT_THAT(stacks, Contains(Pair("app;main;[rare callees];", samples)));
}

TEST(FlameAdder, IsBoundedInTexts) {
  FlameAdder adder({}, 1000);
  std::vector<Profile> parts;
  for (unsigned i = 0; i < 1000; ++i) parts.push_back(PartNumber(i));
  const auto added = adder.Add(TablesOf(parts));
  ASSERT_FALSE(added);
  EXPECT_EQ(added.error().code(), ksym::ErrorCode::kLimit);
}

}  // namespace
}  // namespace profd::history
