// SPDX-License-Identifier: Apache-2.0
#include "daemon/runtime/frame_merge.h"

#include <gtest/gtest.h>

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
  EXPECT_EQ(MergeFrames(kNatives, runs, NativeEnd::kWhole),
            (std::vector{Native(100), Python(1), Python(2), Native(200),
                         Native(300), Python(3), Native(400)}));
}

// Frames that do not lead to their end are not shown.
TEST(FrameMergeTest, TornRunsAreAMark) {
  std::vector runs = {MakeRun({1, 2}, 0)};
  runs[0].is_torn = true;
  EXPECT_EQ(MergeFrames(std::vector<uint64_t>{100}, runs, NativeEnd::kWhole),
            (std::vector{kTorn, Native(100)}));
}

// What lies beyond the place where the native walk was cut is kept; beyond the
// outermost frame nothing belongs to the stack.
TEST(FrameMergeTest, RunsBehindTheEnd) {
  const std::vector runs = {MakeRun({1}, 0), MakeRun({2}, std::nullopt)};
  const std::vector<uint64_t> natives = {100, 200};
  EXPECT_EQ(MergeFrames(natives, runs, NativeEnd::kCut),
            (std::vector{Python(1), Native(100), Native(200), Python(2)}));
  EXPECT_EQ(MergeFrames(natives, runs, NativeEnd::kWhole),
            (std::vector{Python(1), Native(100), Native(200)}));
}

// A run that is nearer to the leaf than the first native frame is of a call
// that has ended.
TEST(FrameMergeTest, RunsInFrontOfTheFirstFrame) {
  const std::vector runs = {MakeRun({1}, std::nullopt), MakeRun({2}, 1)};
  EXPECT_EQ(MergeFrames(std::vector<uint64_t>{100, 200}, runs, NativeEnd::kCut),
            (std::vector{Native(100), Python(2), Native(200)}));
}

// An anchor belongs to the frame in whose half-open part of the stack it lies;
// the last frame's part has no known end.
TEST(FrameMergeTest, PlacesByAnchors) {
  const std::vector<uint64_t> stack_pointers = {0x1000, 0x1100, 0x1200};
  const auto place = [&](uint64_t anchor) {
    std::vector runs = {MakeRun({1}, std::nullopt)};
    runs[0].anchor = anchor;
    PlaceRuns(stack_pointers, runs);
    return runs[0].native;
  };
  EXPECT_EQ(place(0xfff), std::nullopt);
  EXPECT_EQ(place(0x1000), 0u);
  EXPECT_EQ(place(0x10ff), 0u);
  EXPECT_EQ(place(0x1100), 1u);
  EXPECT_EQ(place(0x11ff), 1u);
  EXPECT_EQ(place(0x1200), std::nullopt);
  EXPECT_EQ(place(0), std::nullopt);
}

}  // namespace
}  // namespace profd
