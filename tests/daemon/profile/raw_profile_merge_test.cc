// SPDX-License-Identifier: Apache-2.0
#include "daemon/profile/raw_profile_merge.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

namespace profd {
namespace {

using ::testing::ElementsAre;
using ::testing::UnorderedElementsAre;

ksym::Mapping MappingAt(uint64_t start, uint64_t end, std::string path) {
  ksym::Mapping mapping;
  mapping.start = {start};
  mapping.end = {end};
  mapping.path = std::move(path);
  return mapping;
}

RawSample SampleOf(StackId user, uint64_t count) {
  return {.process = {.pid = 7},
          .comm = Comm("a"),
          .user_stack = user,
          .count = count};
}

// An empty profile becomes the interval, metadata included.
TEST(RawProfileMergeTest, IntoEmpty) {
  RawProfile into;
  RawProfile interval;
  interval.metadata.version = "1";
  interval.accounting.taken = 3;
  interval.samples = {SampleOf(100, 3)};
  interval.stacks.Add(100, RawStack{.frames = {1, 2}});
  interval.images[{.pid = 7}] = {.id = {.pid = 7}, .mappings = {}};
  Merge(into, std::move(interval));
  EXPECT_EQ(into.metadata.version, "1");
  EXPECT_EQ(into.accounting.taken, 3u);
  EXPECT_THAT(into.samples, ElementsAre(SampleOf(100, 3)));
  EXPECT_EQ(into.stacks.Get(100).frames.size(), 2u);
  EXPECT_EQ(into.images.size(), 1u);
}

RuntimeFrame FrameOf(std::string name, RuntimeFrameId caller = 0) {
  RuntimeFrame frame;
  frame.name = std::move(name);
  frame.caller = caller;
  return frame;
}

// A function has its name, whether that came with the first interval or a later
// one.
TEST(RawProfileMergeTest, KeepsNamesOfRuntimeFrames) {
  RawProfile into;
  into.runtime_frames = {{1, FrameOf("")}, {2, FrameOf("known")}};
  RawProfile interval;
  interval.runtime_frames = {
      {1, FrameOf("late", 3)}, {2, FrameOf("")}, {3, FrameOf("x")}};
  Merge(into, std::move(interval));
  const RuntimeFrameTable wanted = {
      {1, FrameOf("late", 3)}, {2, FrameOf("known")}, {3, FrameOf("x")}};
  EXPECT_EQ(into.runtime_frames, wanted);
}

// Equal samples add up, others stay apart, and the accounting is summed.
TEST(RawProfileMergeTest, SumsEqualSamples) {
  RawProfile into;
  into.metadata.version = "1";
  into.accounting = {.taken = 3, .emitted = 3};
  into.samples = {SampleOf(100, 3)};
  into.stacks.Add(100, RawStack{.frames = {1}});
  RawProfile interval = into;
  interval.samples.push_back(SampleOf(kFaultedStack, 1));
  interval.samples.push_back(SampleOf(100, 2));
  interval.samples.back().process.exec_count = 1;
  Merge(into, std::move(interval));
  RawSample other_generation = SampleOf(100, 2);
  other_generation.process.exec_count = 1;
  EXPECT_THAT(into.samples,
              UnorderedElementsAre(SampleOf(100, 6), SampleOf(kFaultedStack, 1),
                                   other_generation));
  EXPECT_EQ(into.accounting.taken, 6u);
  EXPECT_EQ(into.stacks.size(), 1u);
}

// A waker is renamed with its stacks; one whose id means another one is
// neither.
TEST(RawProfileMergeTest, KeepsWakersApart) {
  RawProfile into;
  into.stacks.Add(100, RawStack{.frames = {1}});
  into.wakers[20] = {
      .process = {.pid = 7}, .comm = Comm("a"), .user_stack = 100};
  into.wakers[21] = {
      .process = {.pid = 7}, .comm = Comm("b"), .user_stack = 100};
  RawProfile interval;
  interval.stacks.Add(100, RawStack{.frames = {2}});
  interval.wakers[20] = {.process = {.pid = 8}, .comm = Comm("a")};
  interval.wakers[22] = {
      .process = {.pid = 7}, .comm = Comm("c"), .user_stack = 100};
  Merge(into, std::move(interval));
  ASSERT_EQ(into.wakers.size(), 2u);
  EXPECT_EQ(into.wakers.at(21).user_stack, 100u);
  EXPECT_EQ(into.stacks.Get(into.wakers.at(22).user_stack).frames,
            std::vector<uint64_t>{2});
}

// A bucket number that means other frames in a later interval is renamed, with
// its samples; the same stack seen a third time joins the renamed one.
TEST(RawProfileMergeTest, KeepsReusedStackIdsApart) {
  RawProfile first;
  first.metadata.version = "1";
  first.samples = {SampleOf(100, 1)};
  first.stacks.Add(100, RawStack{.frames = {1}});
  RawProfile second = first;
  second.stacks = {};
  second.stacks.Add(100, RawStack{.frames = {2}});
  const RawProfile third = second;
  Merge(first, std::move(second));
  Merge(first, RawProfile(third));
  ASSERT_EQ(first.samples.size(), 2u);
  ASSERT_EQ(first.stacks.size(), 2u);
  for (const RawSample& sample : first.samples) {
    const bool is_first = sample.user_stack == 100;
    EXPECT_EQ(sample.count, is_first ? 1u : 2u);
    EXPECT_THAT(first.stacks.Get(sample.user_stack).frames,
                ElementsAre(is_first ? 1u : 2u));
    EXPECT_GE(sample.user_stack, kFirstStackId);
  }
}

// Where a process had another file in the same place before, its samples of
// the two intervals belong to two processes, each with its own mappings.
TEST(RawProfileMergeTest, KeepsContradictingMappingsApart) {
  const auto interval_of = [](uint64_t inode) {
    RawProfile interval;
    interval.metadata.version = "1";
    interval.samples = {SampleOf(100, 1)};
    ksym::Mapping mapping = MappingAt(0x1000, 0x2000, "lib");
    mapping.inode = inode;
    interval.images[{.pid = 7}] = {.id = {.pid = 7}, .mappings = {mapping}};
    return interval;
  };
  RawProfile into;
  for (const uint64_t inode : {1, 2, 1, 3, 2}) {
    Merge(into, interval_of(inode));
  }
  ASSERT_EQ(into.samples.size(), 3u);
  std::map<uint64_t, uint64_t> counts;  // by inode
  for (const RawSample& sample : into.samples) {
    EXPECT_EQ(sample.process.pid, 7u);
    const auto& image = into.images.at(sample.process);
    EXPECT_EQ(image.id, sample.process);
    ASSERT_EQ(image.mappings.size(), 1u);
    counts[image.mappings[0].inode] += sample.count;
  }
  EXPECT_EQ(counts, (std::map<uint64_t, uint64_t>{{1, 2}, {2, 2}, {3, 1}}));
}

// Later mappings win; earlier ones stay where the later image has a gap. An
// earlier mapping that ends where a later one starts does not overlap.
TEST(RawProfileMergeTest, UnitesMappings) {
  RawProfile into;
  into.metadata.version = "1";
  const ksym::ProcessId id = {.pid = 7};
  into.images[id] = {.id = id,
                     .mappings = {MappingAt(0x1000, 0x2000, "old"),
                                  MappingAt(0x2000, 0x3001, "replaced"),
                                  MappingAt(0x5000, 0x6000, "unloaded")}};
  RawProfile interval;
  interval.images[id] = {.id = id,
                         .mappings = {MappingAt(0x3000, 0x4000, "new"),
                                      MappingAt(0x4000, 0x5000, "newer")}};
  Merge(into, std::move(interval));
  std::vector<std::string> paths;
  for (const auto& mapping : into.images[id].mappings) {
    paths.push_back(mapping.path);
  }
  EXPECT_THAT(paths, ElementsAre("old", "new", "newer", "unloaded"));
}

// The time span reaches from the first interval's start to the last one's
// end, and each warning is kept once.
TEST(RawProfileMergeTest, ExtendsMetadata) {
  RawProfile into;
  into.metadata.start_unix_ns = 100;
  into.metadata.duration_ns = 50;
  into.metadata.warnings = {"a"};
  RawProfile interval;
  interval.metadata.start_unix_ns = 160;
  interval.metadata.duration_ns = 40;
  interval.metadata.warnings = {"a", "b"};
  Merge(into, std::move(interval));
  EXPECT_EQ(into.metadata.start_unix_ns, 100u);
  EXPECT_EQ(into.metadata.duration_ns, 100u);
  EXPECT_THAT(into.metadata.warnings, ElementsAre("a", "b"));
}

}  // namespace
}  // namespace profd
