// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "daemon/history/file_flame.h"
#include "daemon/history/flame_adder.h"
#include "daemon/history/flame_nodes.h"
#include "daemon/history/range_profile.h"
#include "daemon/output/flame_tree.h"
#include "tests/daemon/history/sample_parts.h"
#include "tests/daemon/history/stack_parts.h"

namespace profd::history {
namespace {

using testing::Contains;
using testing::Pair;

constexpr size_t kRoomOfFlame = size_t{64} << 20;

Profile FlameOf(const std::vector<Tables>& files, size_t nodes,
                Selection selection = {}) {
  FlameAdder adder(std::move(selection),
                   {.nodes = nodes, .max_bytes = kRoomOfFlame});
  for (const Tables& file : files) {
    const auto added = adder.Add(file);
    EXPECT_TRUE(added) << added.error().message();
  }
  return std::move(adder).Finish();
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

TEST(RareTotals, AreTheLargestThatDoNotStay) {
  std::mt19937 random(1);
  RareTotals rare;
  for (const unsigned different : {1u, 3u, 1000u, 1u << 30}) {
    std::vector<uint64_t> totals(5000);
    for (uint64_t& total : totals) total = random() % different;
    for (const size_t most : {0u, 1u, 10u, 700u, 4999u, 5000u, 6000u}) {
      rare.Begin(most);
      for (const uint64_t total : totals) rare.Add(total);
      std::vector<uint64_t> sorted = totals;
      std::ranges::sort(sorted, std::greater());
      const auto wanted =
          most < sorted.size() ? std::optional(sorted[most]) : std::nullopt;
      EXPECT_EQ(rare.Find(), wanted) << different << ' ' << most;
    }
  }
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
  FlameAdder adder({}, {.nodes = 100, .max_bytes = 4 * kRoomOfFlame});
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
  const Profile flame = std::move(adder).Finish();
  const auto stacks = StacksOf(flame);
  EXPECT_EQ(SumOf(stacks), samples);
  EXPECT_THAT(stacks, Contains(Pair("app;main;[rare callees];", samples)));
}

// A part of stacks of two or three functions, whose names others have as well
// in files with other build ids.
Profile RandomPart(unsigned number, std::mt19937& random) {
  const auto below = [&](unsigned end) {
    return static_cast<unsigned>(random() % end);
  };
  ProfileBuilder builder;
  const auto stack = [&](const FrameKind& kind) {
    std::vector<FrameId> frames;
    for (unsigned depth = below(4); depth > 0; --depth) {
      const std::string name =
          (kind.is_kernel ? "k" : "f") + std::to_string(below(3) * below(4));
      const std::string build_id = below(2) == 0 ? "aa" : "bb";
      frames.push_back(
          builder.AddFrame({.name = builder.Intern(name),
                            .object = builder.Intern("/usr/bin/app"),
                            .build_id = builder.Intern(build_id),
                            .kind = &kind}));
    }
    return builder.AddStack(frames);
  };
  uint64_t samples = 0;
  for (unsigned i = 0; i < 40; ++i) {
    const uint64_t count = 1 + below(3) * below(5);
    builder.AddSample({.comm = builder.Intern(below(3) == 0 ? "a" : "b"),
                       .pid = 1 + below(3),
                       .user_state = StackState::kWhole,
                       .kernel_state = StackState::kWhole,
                       .user = stack(kUserFrame),
                       .kernel = stack(kKernelFrame),
                       .count = count});
    samples += count;
  }
  builder.Add({.taken = samples, .emitted = samples});
  CaptureMetadata metadata;
  metadata.kinds = {EventKind("cpu-clock", 1, 0)};
  metadata.start_unix_ns = kFirstPart + number * kSecond;
  metadata.duration_ns = kSecond;
  return std::move(builder).Finish(std::move(metadata));
}

// What each beginning of a stack is of: "b;f0;f1;" with all that it calls.
std::map<std::string, uint64_t> TotalsOfStacks(
    const std::map<std::string, uint64_t>& stacks) {
  std::map<std::string, uint64_t> totals;
  for (const auto& [text, count] : stacks) {
    for (size_t end = text.find(';'); end != std::string::npos;
         end = text.find(';', end + 1)) {
      totals[text.substr(0, end + 1)] += count;
    }
  }
  return totals;
}

// The samples that the warning says, of a second each; 0: there is none.
uint64_t RareUpTo(const Profile& flame) {
  if (flame.metadata.warnings.empty()) return 0;
  const std::string& text = flame.metadata.warnings.front();
  constexpr std::string_view kBefore = "what ran for ";
  const size_t at = text.find(kBefore);
  EXPECT_NE(at, std::string::npos) << text;
  return std::stoull(text.substr(at + kBefore.size())) / 1000;
}

TEST(FlameAdder, LeavesOutNoMoreThanItSays) {
  std::mt19937 random(20);
  for (unsigned round = 0; round < 60; ++round) {
    std::vector<Tables> files;
    RangeProfile range({}, kRoomOfFlame);
    for (unsigned i = 0; i <= round % 5; ++i) {
      files.push_back(TablesOf({RandomPart(i, random)}));
      ASSERT_TRUE(range.Add(files.back()));
    }
    const auto whole = StacksOf(std::move(range).Finish());
    const auto wholes = TotalsOfStacks(whole);
    const size_t nodes = round % 3 == 0 ? 10'000 : 5 + round;
    const Profile flame = FlameOf(files, nodes);
    const auto stacks = StacksOf(flame);
    const uint64_t rare = RareUpTo(flame);
    if (round % 3 == 0) {
      EXPECT_EQ(rare, 0u);
      EXPECT_EQ(stacks, whole);
    }
    EXPECT_EQ(SumOf(stacks), SumOf(whole));
    const auto shown = TotalsOfStacks(stacks);
    for (const auto& [text, total] : wholes) {
      const auto found = shown.find(text);
      const uint64_t is = found == shown.end() ? 0 : found->second;
      EXPECT_LE(is, total) << text;
      EXPECT_GE(is + rare, total) << text;
    }
    for (const auto& [text, total] : shown) {
      if (text.find("[rare callees]") != std::string::npos) continue;
      EXPECT_TRUE(wholes.contains(text)) << text;
    }
    // Beside each node, and each root, a mark.
    EXPECT_LE(FlameTree(flame).nodes().size(), 2 * (nodes + 2) + 1);
  }
}

// A stack that stands for nothing is none too many.
TEST(FlameAdder, KeepsWhatHasNoValue) {
  std::vector<Profile> parts = {PartOf(
      0, {{.user = "main;a", .kind = 1}, {.user = "main;b", .kind = 1}})};
  const Profile flame = FlameOf({TablesOf(parts)}, 100,
                                {.kind = parts[0].metadata.kinds[1].name});
  EXPECT_EQ(StacksOf(flame), (std::map<std::string, uint64_t>{
                                 {"app;main;a;", 1}, {"app;main;b;", 1}}));
  EXPECT_THAT(flame.metadata.warnings, testing::IsEmpty());
}

// One file, of which each of several trees is as large as there may be.
TEST(FlameAdder, TakesAFileOfManyTrees) {
  constexpr unsigned kCommands = 5;
  constexpr unsigned kStacks = 110'000;
  static_assert(kCommands * kStacks > FileFlame::kMaxNodes);
  std::vector<Profile> parts;
  for (unsigned command = 0; command < kCommands; ++command) {
    ProfileBuilder builder;
    for (unsigned i = 0; i < kStacks; ++i) {
      const FrameId frame =
          builder.AddFrame({.name = builder.Intern("f" + std::to_string(i)),
                            .kind = &kUserFrame});
      builder.AddSample({.comm = builder.Intern("c" + std::to_string(command)),
                         .user_state = StackState::kWhole,
                         .user = builder.AddStack(std::vector{frame}),
                         .count = i == 7 ? 100u : 1u});
    }
    builder.Add({.taken = kStacks + 99, .emitted = kStacks + 99});
    CaptureMetadata metadata;
    metadata.kinds = {EventKind("cpu-clock", 10, 0)};
    metadata.start_unix_ns = kFirstPart + command * kSecond;
    metadata.duration_ns = kSecond;
    parts.push_back(std::move(builder).Finish(std::move(metadata)));
  }
  const Tables tables = TablesOf(parts);
  const auto stacks = StacksOf(FlameOf({tables}, 65'536));
  EXPECT_EQ(SumOf(stacks), kCommands * (kStacks + 99));
  for (unsigned command = 0; command < kCommands; ++command) {
    const std::string name = "c" + std::to_string(command);
    EXPECT_THAT(stacks, Contains(Pair(name + ";f7;", 100u)));
    EXPECT_EQ(TotalsOfStacks(stacks)[name + ";"], kStacks + 99);
  }
}

TEST(FlameAdder, IsBoundedInTexts) {
  FlameAdder adder({}, {.nodes = 1000, .max_bytes = 1000});
  std::vector<Profile> parts;
  for (unsigned i = 0; i < 1000; ++i) parts.push_back(PartNumber(i));
  const auto added = adder.Add(TablesOf(parts));
  ASSERT_FALSE(added);
  EXPECT_EQ(added.error().code(), ksym::ErrorCode::kLimit);
}

}  // namespace
}  // namespace profd::history
