// SPDX-License-Identifier: Apache-2.0
#include "daemon/profile/raw_stack_table.h"

#include <gtest/gtest.h>

#include <limits>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace profd {
namespace {

constexpr uint64_t kMax = std::numeric_limits<uint64_t>::max();

// Frames come back as they went in, whatever their differences.
TEST(RawStackTableTest, PacksFrames) {
  const std::vector<uint64_t> cases[] = {
      {},
      {0},
      {kMax},
      {0, kMax, 0, uint64_t{1} << 63, 1},
      {0x7f0000001000, 0x7f0000001080, 0x55d0c0de0000, 0xffffffff81000000}};
  for (const auto& frames : cases) {
    const std::string packed = PackFrames(frames);
    std::vector<uint64_t> unpacked;
    ForEachFrame({.frames = packed}, [&](const RawFrame& frame) {
      EXPECT_EQ(frame, RawFrame{.value = frame.value});
      unpacked.push_back(frame.value);
    });
    EXPECT_EQ(unpacked, frames);
  }
  EXPECT_EQ(PackFrames({0x1000, 0x1010, 0x1008}).size(), 4u);
}

std::vector<RawFrame> Unpacked(std::string_view mixed) {
  std::vector<RawFrame> frames;
  ForEachFrame({.frames = mixed, .mixed = true},
               [&](const RawFrame& frame) { frames.push_back(frame); });
  return frames;
}

// So do frames of several kinds, in their order.
TEST(RawStackTableTest, PacksFramesOfSeveralKinds) {
  const std::vector<RawFrame> cases[] = {
      {},
      {{.value = kMax}},
      {{.kind = 1, .unit = kMax, .value = kMax}},
      {{.value = 0x1000}, {.value = 0x1010}, {.value = 0x1008}},
      {{.kind = 255, .unit = 7, .value = 1},
       {.value = 0x7f0000001000},
       {.value = 0},
       {.kind = 2, .unit = 0x7f0000002000, .value = kMax},
       {.kind = 2, .unit = 0x7f0000002040, .value = 12},
       {.kind = 1, .unit = 0, .value = 0},
       {.value = kMax}}};
  for (const auto& frames : cases) {
    const std::string packed = PackMixedFrames(frames);
    EXPECT_TRUE(IsPackedMixedFrames(packed));
    EXPECT_EQ(Unpacked(packed), frames);
  }
}

// Native frames among others take what they take by themselves, and frames of
// a runtime whose code lies close together some bytes.
TEST(RawStackTableTest, PacksFramesOfSeveralKindsSmall) {
  std::vector<RawFrame> mixed;
  std::vector<uint64_t> native;
  for (uint64_t i = 0; i < 20; ++i) {
    native.push_back(0x7f0000001000 + i * 16);
    mixed.push_back({.value = native.back()});
  }
  for (uint64_t i = 0; i < 20; ++i) {
    mixed.push_back({.kind = 3, .unit = 0x7f1000000000 + i * 400, .value = i});
  }
  const size_t of_runs = 4;
  const size_t first = 7;
  EXPECT_LE(PackMixedFrames(mixed).size(),
            PackFrames(native).size() + of_runs + first + 20 * 3);
}

// Bytes that cannot be unpacked are told apart.
TEST(RawStackTableTest, KnowsBytesOfSeveralKinds) {
  using namespace std::string_literals;
  EXPECT_TRUE(IsPackedMixedFrames(""));
  EXPECT_TRUE(IsPackedMixedFrames("\0\1\2"s));
  EXPECT_TRUE(IsPackedMixedFrames("\377\1\1\2\3"s));   // kind 255
  EXPECT_FALSE(IsPackedMixedFrames("\200\2\1\2\3"s));  // kind 256
  EXPECT_FALSE(IsPackedMixedFrames("\0"s));            // no number
  EXPECT_FALSE(IsPackedMixedFrames("\0\0"s));          // of no frame
  EXPECT_FALSE(IsPackedMixedFrames("\0\2\2"s));        // one is missing
  EXPECT_FALSE(IsPackedMixedFrames("\1\1\2"s));        // without a value
  EXPECT_FALSE(IsPackedMixedFrames("\0\1\200"s));      // half a varint
  EXPECT_FALSE(IsPackedMixedFrames("\0\1" + std::string(10, '\200') + "\1"));
  EXPECT_FALSE(IsPackedMixedFrames("\0" + std::string(9, '\377') + "\1\2"));
}

// A stack of several kinds keeps all its frames; native ones can be had alone.
TEST(RawStackTableTest, KeepsFramesOfSeveralKinds) {
  const std::vector<RawFrame> frames = {
      {.value = 0x1000}, {.kind = 2, .unit = 5, .value = 6}, {.value = 0x2000}};
  const std::string packed = PackMixedFrames(frames);
  RawStackTable table;
  table.Add(100, PackedStack{.frames = packed, .mixed = true});
  table.Add(101, RawStack{.frames = {0x3000}});
  const auto found = table.Find(100);
  ASSERT_TRUE(found);
  EXPECT_TRUE(found->mixed);
  EXPECT_EQ(Unpacked(found->frames), frames);
  EXPECT_FALSE(table.GetPacked(101).mixed);
  EXPECT_EQ(table.Get(100).frames, (std::vector<uint64_t>{0x1000, 0x2000}));
  EXPECT_EQ(table.CountFrames(), 4u);
}

// A stack is found by its id with all that belongs to it, also among many; the
// first one with an id stays.
TEST(RawStackTableTest, FindsById) {
  RawStackTable table;
  EXPECT_TRUE(table.empty());
  EXPECT_EQ(table.Find(100), std::nullopt);
  std::mt19937_64 random(1);
  std::vector<StackId> ids;
  for (size_t i = 0; i < 10'000; ++i) {
    const StackId id = random() | kFirstStackId;
    ids.push_back(id);
    ASSERT_TRUE(
        table.Add(id, RawStack{.frames = {id, i},
                               .end = static_cast<StackEnd>(i % kStackEnds),
                               .used_frame_pointers = i % 2 == 0}));
  }
  EXPECT_FALSE(table.Add(ids[7], RawStack{.frames = {1}}));
  EXPECT_EQ(table.ids(), ids);
  for (size_t i = 0; i < ids.size(); ++i) {
    const RawStack expected = {.frames = {ids[i], i},
                               .end = static_cast<StackEnd>(i % kStackEnds),
                               .used_frame_pointers = i % 2 == 0};
    ASSERT_EQ(table.Get(ids[i]), expected);
    ASSERT_TRUE(table.contains(ids[i]));
  }
  EXPECT_FALSE(table.contains(kFirstStackId - 1));
}

// Stacks that come in the order of their ids are found wherever the search
// begins, what lies between them is not, and one that comes out of order joins
// them.
TEST(RawStackTableTest, FindsAmongAscendingIds) {
  constexpr uint32_t kStacks = 70;
  RawStackTable table;
  for (uint64_t i = 0; i < kStacks; ++i) {
    ASSERT_TRUE(table.Add(100 + 10 * i, RawStack{.frames = {i, i + 1}}));
  }
  EXPECT_FALSE(table.Add(100, RawStack{}));
  EXPECT_FALSE(table.Add(100 + 10 * (kStacks - 1), RawStack{}));
  EXPECT_EQ(table.CountFrames(), 2 * kStacks);
  for (uint32_t near = 0; near < kStacks + 2; ++near) {
    for (uint32_t i = 0; i < kStacks; ++i) {
      ASSERT_EQ(table.IndexOf(100 + 10 * uint64_t{i}, near), i) << near;
      ASSERT_EQ(table.IndexOf(101 + 10 * uint64_t{i}, near), std::nullopt);
    }
    ASSERT_EQ(table.IndexOf(99, near), std::nullopt);
  }
  ASSERT_TRUE(table.Add(105, RawStack{.frames = {7}}));
  EXPECT_FALSE(table.Add(105, RawStack{}));
  EXPECT_FALSE(table.Add(110, RawStack{}));
  EXPECT_EQ(table.IndexOf(105), kStacks);
  EXPECT_EQ(table.Get(105).frames, std::vector<uint64_t>{7});
  EXPECT_EQ(table.Get(110).frames, (std::vector<uint64_t>{1, 2}));
}

// Frames within the table's own bytes are not copied; others are.
TEST(RawStackTableTest, KeepsFramesWhereTheyAre) {
  const std::string packed = PackFrames({0x1000, 0x1010});
  RawStackTable table("some text in front" + packed);
  const std::string_view within = table.bytes().substr(18);
  ASSERT_TRUE(table.Add(100, PackedStack{.frames = within}));
  EXPECT_EQ(table.Find(100)->frames.data(), within.data());
  ASSERT_TRUE(table.Add(50, PackedStack{.frames = packed}));
  ASSERT_TRUE(table.Add(60, PackedStack{}));
  const RawStackTable moved = std::move(table);
  for (const StackId id : {50, 100}) {
    EXPECT_EQ(moved.Get(id).frames, (std::vector<uint64_t>{0x1000, 0x1010}));
  }
  EXPECT_TRUE(moved.Get(60).frames.empty());
}

// Tables are equal if they have the same stacks, whatever came first.
TEST(RawStackTableTest, Compares) {
  const RawStack one = {.frames = {1, 2}};
  const RawStack two = {.frames = {1, 2}, .used_frame_pointers = true};
  RawStackTable a;
  a.Add(100, one);
  a.Add(200, two);
  RawStackTable b;
  b.Add(200, two);
  EXPECT_FALSE(a == b);
  b.Add(100, one);
  EXPECT_TRUE(a == b);
  RawStackTable c;
  c.Add(100, two);
  c.Add(200, two);
  EXPECT_FALSE(a == c);
}

}  // namespace
}  // namespace profd
