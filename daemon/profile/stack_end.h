// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace profd {

// How the walk of a user stack ended. A kernel stack is kFramePointers or
// kDepthLimit.
enum class StackEnd : uint8_t {
  kOutermost = 0,         // its outermost frame was reached
  kZeroFramePointer = 1,  // frame pointers ended in 0, as in the outermost one
  kDepthLimit = 2,        // deeper than the limit
  kNoTable = 3,           // in code of which nothing is known
  kNoMapping = 4,         // at an address that is no code
  kBadRead = 5,           // memory of the stack could not be read
  kUnsupported = 6,       // the file's call-frame information is beyond us
  kNoProgress = 7,        // the next frame was not above this one
  kFramePointers = 8,     // walked by the kernel, which does not tell
  kNotYet = 9,            // the same, before the process's tables were there
  kNotWalked = 10,        // only the innermost frame was asked for
  kBeyondCopy = 11,       // deeper than the part of it that was copied
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
