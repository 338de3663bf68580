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

constexpr uint64_t kMost = std::numeric_limits<uint64_t>::max();

// Frames come back as they went in, whatever their differences.
TEST(RawStackTableTest, PacksFrames) {
  const std::vector<uint64_t> cases[] = {
      {},
      {0},
      {kMost},
      {0, kMost, 0, uint64_t{1} << 63, 1},
      {0x7f0000001000, 0x7f0000001080, 0x55d0c0de0000, 0xffffffff81000000}};
  for (const auto& frames : cases) {
    std::vector<uint64_t> unpacked = {1, 2, 3};
    UnpackFrames(PackFrames(frames), unpacked);
    EXPECT_EQ(unpacked, frames);
  }
  EXPECT_EQ(PackFrames({0x1000, 0x1010, 0x1008}).size(), 4u);
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
