// SPDX-License-Identifier: Apache-2.0
#include "daemon/runtime/frame_merge.h"

#include <algorithm>

namespace profd {
namespace {

void Append(const RuntimeRun& run, std::vector<RawFrame>& frames) {
  if (run.is_torn) {
    frames.push_back({.kind = kTornFrames});
    return;
  }
  for (const RuntimeFrameId id : run.frames) {
    frames.push_back({.kind = kPythonCode, .value = id});
  }
}

}  // namespace

void PlaceRuns(std::span<const uint64_t> stack_pointers,
               std::vector<RuntimeRun>& runs) {
  size_t next = 0;
  for (RuntimeRun& run : runs) {
    run.native.reset();
    if (run.anchor == 0) continue;
    // The last frame has no end: nothing can be said to lie in it.
    while (next + 1 < stack_pointers.size() &&
           stack_pointers[next + 1] <= run.anchor) {
      ++next;
    }
    if (next + 1 < stack_pointers.size() &&
        stack_pointers[next] <= run.anchor) {
      run.native = next;
    }
  }
}

std::vector<RawFrame> MergeFrames(std::span<const uint64_t> native,
                                  std::span<const RuntimeRun> runs,
                                  NativeEnd end) {
  std::vector<RawFrame> frames;
  auto run = runs.begin();
  const auto is_placed = [](const RuntimeRun& r) {
    return r.native.has_value();
  };
  // Those in front of the first one with a place are of calls that have ended.
  if (std::ranges::any_of(runs, is_placed)) {
    run = std::ranges::find_if(runs, is_placed);
  }
  for (size_t i = 0; i < native.size(); ++i) {
    for (; run != runs.end(); ++run) {
      const std::optional<size_t> place = run->native;
      if (!place || *place > i) break;
      Append(*run, frames);
    }
    frames.push_back({.value = native[i]});
  }
  if (end == NativeEnd::kWhole) return frames;
  for (; run != runs.end(); ++run) Append(*run, frames);
  return frames;
}

}  // namespace profd
