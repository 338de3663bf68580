// SPDX-License-Identifier: Apache-2.0
#include "daemon/runtime/frame_merge.h"

#include <gtest/gtest.h>

#include <span>
#include <vector>

namespace profd {
namespace {

constexpr RawFrame Native(uint64_t address) { return {.value = address}; }
constexpr RawFrame Python(RuntimeFrameId id) {
  return {.kind = kPythonCode, .value = id};
}
constexpr RawFrame kTorn = {.kind = kTornFrames};

RuntimeRun MakeRun(std::vector<RuntimeFrameId> frames,
                   std::optional<size_t> native) {
  RuntimeRun run;
  run.frames = std::move(frames);
  run.native = native;
  return run;
}

const std::vector<uint64_t> kNatives = {100, 200, 300, 400};

// Each run stands in front of the native frame that works through it.
TEST(FrameMergeTest, RunsStandBeforeTheirNativeFrames) {
  const std::vector runs = {MakeRun({1, 2}, 1), MakeRun({3}, 3)};
  EXPECT_EQ(MergeFrames(kNatives, runs, {}, NativeEnd::kWhole),
            (std::vector{Native(100), Python(1), Python(2), Native(200),
                         Native(300), Python(3), Native(400)}));
}

// Code that a runtime made has its functions instead of its address; other
// frames stay, and runs still stand before the frames that work through them.
TEST(FrameMergeTest, CodeStandsInPlaceOfNativeFrames) {
  const std::vector runs = {MakeRun({1}, 1)};
  const std::vector<CodeFrames> code = {{1, {Python(7), Python(8)}},
                                        {3, {Python(9)}}};
  EXPECT_EQ(MergeFrames(kNatives, runs, code, NativeEnd::kWhole),
            (std::vector{Native(100), Python(1), Python(7), Python(8),
                         Native(300), Python(9)}));
}

// Frames that do not lead to their end are not shown.
TEST(FrameMergeTest, TornRunsAreAMark) {
  std::vector runs = {MakeRun({1, 2}, 0)};
  runs[0].is_torn = true;
  EXPECT_EQ(
      MergeFrames(std::vector<uint64_t>{100}, runs, {}, NativeEnd::kWhole),
      (std::vector{kTorn, Native(100)}));
}

// What lies beyond the place where the native walk was cut is kept; beyond the
// outermost frame nothing belongs to the stack.
TEST(FrameMergeTest, RunsBehindTheEnd) {
  const std::vector runs = {MakeRun({1}, 0), MakeRun({2}, std::nullopt)};
  const std::vector<uint64_t> natives = {100, 200};
  EXPECT_EQ(MergeFrames(natives, runs, {}, NativeEnd::kCut),
            (std::vector{Python(1), Native(100), Native(200), Python(2)}));
  EXPECT_EQ(MergeFrames(natives, runs, {}, NativeEnd::kWhole),
            (std::vector{Python(1), Native(100), Native(200)}));
}

// Runs of which nothing is shown are counted; torn ones are shown or counted
// as such.
TEST(FrameMergeTest, CountsWhatIsLeftOut) {
  std::vector runs = {MakeRun({1}, std::nullopt), MakeRun({2}, 1),
                      MakeRun({3}, std::nullopt), MakeRun({4}, std::nullopt)};
  EXPECT_EQ(CountLeftOut(runs, NativeEnd::kCut), 1u);
  EXPECT_EQ(CountLeftOut(runs, NativeEnd::kWhole), 3u);
  runs[3].is_torn = true;
  EXPECT_EQ(CountLeftOut(runs, NativeEnd::kWhole), 2u);
  runs.erase(runs.begin() + 1);
  EXPECT_EQ(CountLeftOut(runs, NativeEnd::kCut), 0u);
}

// A run that is nearer to the leaf than the first native frame is of a call
// that has ended.
TEST(FrameMergeTest, RunsInFrontOfTheFirstFrame) {
  const std::vector runs = {MakeRun({1}, std::nullopt), MakeRun({2}, 1)};
  EXPECT_EQ(
      MergeFrames(std::vector<uint64_t>{100, 200}, runs, {}, NativeEnd::kCut),
      (std::vector{Native(100), Python(2), Native(200)}));
}

// Torn runs in a row are one mark; one without a place is marked behind the
// last frame that has one, if others have places.
TEST(FrameMergeTest, MarksOfTornRuns) {
  std::vector runs = {MakeRun({1}, 0), MakeRun({2}, 2), MakeRun({3}, 2),
                      MakeRun({}, std::nullopt)};
  for (size_t i : {1, 2, 3}) runs[i].is_torn = true;
  EXPECT_EQ(MergeFrames(kNatives, runs, {}, NativeEnd::kWhole),
            (std::vector{Python(1), Native(100), Native(200), kTorn,
                         Native(300), kTorn, Native(400)}));
  EXPECT_EQ(
      MergeFrames(kNatives, std::span(runs).last(1), {}, NativeEnd::kWhole),
      (std::vector{kTorn, Native(100), Native(200), Native(300), Native(400)}));
}

// An anchor belongs to the frame in whose half-open part of the stack it lies;
// the last frame's part has no known end.
TEST(FrameMergeTest, PlacesByAnchors) {
  const std::vector<uint64_t> stack_pointers = {0x1000, 0x1100, 0x1200};
  const ksym::PieceMemory memory;
  const auto place = [&](uint64_t anchor) {
    RuntimeRuns runs = {.runs = {MakeRun({1}, std::nullopt)}};
    runs.runs[0].anchor = anchor;
    PlaceRuns({.stack_pointers = stack_pointers, .memory = memory}, runs);
    return runs.runs[0].native;
  };
  EXPECT_EQ(place(0xfff), std::nullopt);
  EXPECT_EQ(place(0x1000), 0u);
  EXPECT_EQ(place(0x10ff), 0u);
  EXPECT_EQ(place(0x1100), 1u);
  EXPECT_EQ(place(0x11ff), 1u);
  EXPECT_EQ(place(0x1200), std::nullopt);
  EXPECT_EQ(place(0), std::nullopt);
}

// Native frames that end at 0x1100, 0x1200 and so on, each with a word 16 bytes
// below its end.
class WordsTest : public testing::Test {
 protected:
  std::vector<RuntimeRun> Place(const std::vector<uint64_t>& words,
                                const std::vector<uint64_t>& anchors) {
    std::vector<uint64_t> stack(32 * words.size());
    std::vector<uint64_t> stack_pointers = {kBegin};
    for (size_t i = 0; i < words.size(); ++i) {
      stack[32 * i + 30] = words[i];
      stack_pointers.push_back(stack_pointers.back() + 0x100);
    }
    ksym::PieceMemory memory;
    memory.Add({kBegin}, std::as_bytes(std::span(stack)));
    RuntimeRuns runs = {.runs = {}, .word_below = below_};
    for (const uint64_t anchor : anchors) {
      runs.runs.push_back(MakeRun({anchor}, 99));
      runs.runs.back().anchor = anchor;
    }
    PlaceRuns({.stack_pointers = stack_pointers, .memory = memory}, runs);
    MarkGaps(runs.runs);
    return runs.runs;
  }

  static constexpr uint64_t kBegin = 0x1000;
  uint32_t below_ = 16;
};

// A run belongs to the native frame that has its word; frames without one have
// no run.
TEST_F(WordsTest, PlacesByWords) {
  const auto runs = Place({7, 0, 8, 5, 9}, {7, 8, 9});
  EXPECT_EQ(runs[0].native, 0u);
  EXPECT_EQ(runs[1].native, 2u);
  EXPECT_EQ(runs[2].native, 4u);
  for (const RuntimeRun& run : runs) EXPECT_FALSE(run.is_torn);
}

// A call that begins or ends has no word; behind others it is torn.
TEST_F(WordsTest, RunsWithoutWords) {
  auto runs = Place({8, 9}, {7, 8, 9});
  EXPECT_EQ(runs[0].native, std::nullopt);
  EXPECT_FALSE(runs[0].is_torn);
  EXPECT_EQ(runs[1].native, 0u);
  runs = Place({7, 9}, {7, 8, 9});
  EXPECT_EQ(runs[1].native, 1u);
  EXPECT_TRUE(runs[1].is_torn);
  EXPECT_FALSE(runs[2].is_torn);
  // Not beyond a few, and never by a word that is 0.
  EXPECT_EQ(Place({9}, {4, 5, 6, 7, 9})[4].native, std::nullopt);
  EXPECT_EQ(Place({0}, {0})[0].native, std::nullopt);
}

// A word is within its frame.
TEST_F(WordsTest, WordsBelowTheFrame) {
  below_ = 0x110;
  EXPECT_EQ(Place({7, 8}, {7})[0].native, std::nullopt);
}

}  // namespace
}  // namespace profd
