// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "daemon/profile/raw_stack_table.h"
#include "daemon/profile/runtime_frame.h"
#include "ksym/runtime/memory.h"

namespace profd {

// Frames of a runtime that one call of its evaluation loop works through.
struct RuntimeRun {
  std::vector<RuntimeFrameId> frames;  // leaf first
  // The native frame of that call, as an index; nothing: it was not reached.
  std::optional<size_t> native;
  // An address within it, or a word that is there; 0: not known.
  uint64_t anchor = 0;
  bool is_torn = false;  // its frames do not lead to its end
};

// The functions that a native frame stands for, whose code a runtime made.
struct CodeFrames {
  size_t native = 0;
  std::vector<RawFrame> frames;  // leaf first, not empty
};

// The frames that came for a stack, leaf first.
struct RuntimeRuns {
  std::vector<RuntimeRun> runs;
  std::vector<CodeFrames> code = {};  // by native frame, each once
  // 0: anchors are addresses; else words that are so many bytes below the ends
  // of native frames.
  uint32_t word_below = 0;
  // There were more than can be walked; then the last run is torn.
  bool is_cut = false;
  bool waits = false;  // the thread, for the runtime's global lock
};

// A stack of native frames, as far as runs are placed by it: all but the code.
struct NativeStack {
  // Where each frame begins, leaf first; it ends where the next one begins.
  std::span<const uint64_t> stack_pointers;
  const ksym::Memory& memory;
  // Frames of code without rows, as indexes; in order.
  struct Rowless {
    size_t index = 0;
    bool is_in_file = false;
  };
  std::vector<Rowless> rowless = {};
};

// Finds the native frames by the anchors.
void PlaceRuns(const NativeStack& stack, RuntimeRuns& runs);

// A run without a place between others that have theirs is torn, and belongs to
// where the next one does.
void MarkGaps(std::vector<RuntimeRun>& runs);

// Whether the root end of the native frames is there.
enum class NativeEnd : uint8_t { kWhole, kCut };

// Whole runs of which MergeFrames() shows nothing.
size_t CountLeftOut(std::span<const RuntimeRun> runs, NativeEnd end);

// The frames of both, leaf first: each run in front of its native frame. A torn
// run is one of kTornFrames and no more, as are several in a row; one without a
// place, behind all that have one, stands behind the last native frame of
// these. Other runs behind the last native frame are kept if that is where the
// walk was cut; else what was not reached does not belong to this stack, as
// with coroutines that have stacks of their own. MarkGaps() was called. Frames
// of code stand in place of their native frame.
std::vector<RawFrame> MergeFrames(std::span<const uint64_t> native,
                                  std::span<const RuntimeRun> runs,
                                  std::span<const CodeFrames> code,
                                  NativeEnd end);

}  // namespace profd
