// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "ksym/unwind/unwind_kinds.h"

namespace profd {

// How the walk of a user stack ended. A kernel stack is kFramePointers or
// kDepthLimit.
enum class StackEnd : uint8_t {
  // Its outermost frame was reached.
  kOutermost = UNWIND_END_OUTERMOST,
  // Frame pointers ended in 0, as in the outermost one.
  kZeroFramePointer = UNWIND_END_ZERO_FRAME_POINTER,
  // Deeper than the limit.
  kDepthLimit = UNWIND_END_DEPTH_LIMIT,
  // In code of which nothing is known.
  kNoTable = UNWIND_END_NO_TABLE,
  // At an address that is no code.
  kNoMapping = UNWIND_END_NO_MAPPING,
  // Memory of the stack could not be read.
  kBadRead = UNWIND_END_BAD_READ,
  // The file's call-frame information is beyond us.
  kUnsupported = UNWIND_END_UNSUPPORTED,
  // The next frame was not above this one.
  kNoProgress = UNWIND_END_NO_PROGRESS,
  // Walked by the kernel, which does not tell.
  kFramePointers = UNWIND_END_FRAME_POINTERS,
  // The same, before the process's tables were there.
  kNotYet = UNWIND_END_NOT_YET,
  // Only the innermost frame was asked for.
  kNotWalked = UNWIND_END_NOT_WALKED,
  // Deeper than the part of it that was copied.
  kBeyondCopy = UNWIND_END_BEYOND_COPY,
};
inline constexpr size_t kStackEnds = 12;

// Used in the summary, in JSON and in docs/formats.md, e.g. "bad-read".
std::string_view Name(StackEnd end);

// Its root end is known to be missing, and not for its depth.
constexpr bool IsBroken(StackEnd end) {
  return (end >= StackEnd::kNoTable && end <= StackEnd::kNoProgress) ||
         end == StackEnd::kBeyondCopy;
}

}  // namespace profd
