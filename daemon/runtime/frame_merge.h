// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "daemon/profile/raw_stack_table.h"
#include "daemon/profile/runtime_frame.h"

namespace profd {

// Frames of a runtime that one call of its evaluation loop works through.
struct RuntimeRun {
  std::vector<RuntimeFrameId> frames;  // leaf first
  // The native frame of that call, as an index; nothing: it was not reached.
  std::optional<size_t> native;
  uint64_t anchor = 0;   // an address within it; 0: not known
  bool is_torn = false;  // its frames do not lead to its end
};

// Finds the native frames by the anchors. `stack_pointers`: where each native
// frame begins, leaf first; it ends where the next one begins. Runs are leaf
// first, too.
void PlaceRuns(std::span<const uint64_t> stack_pointers,
               std::vector<RuntimeRun>& runs);

// Whether the root end of the native frames is there.
enum class NativeEnd : uint8_t { kWhole, kCut };

// The frames of both, leaf first: each run in front of its native frame. A torn
// run is one of kTornFrames and no more. Runs behind the last native frame are
// kept if that is where the walk was cut; else what was not reached does not
// belong to this stack, as with coroutines that have stacks of their own.
std::vector<RawFrame> MergeFrames(std::span<const uint64_t> native,
                                  std::span<const RuntimeRun> runs,
                                  NativeEnd end);

}  // namespace profd
