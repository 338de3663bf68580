// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string_view>

#include "daemon/profile/profile.h"

namespace profd {

// What formats show where a stack, or its root, is missing. The first two, for
// stacks that could not be taken, are bcc's words; the others stand at the root
// of a stack that lacks it.
inline constexpr std::array<std::string_view, 9> kStackMarks = {
    "[Missed User Stack]",
    "[Missed Kernel Stack]",
    "[truncated]",
    "[truncated: no-table]",
    "[truncated: no-mapping]",
    "[truncated: bad-read]",
    "[truncated: unsupported]",
    "[truncated: no-progress]",
    "[truncated: beyond-copy]"};

inline bool IsMissed(StackState state) {
  return state == StackState::kFaulted || state == StackState::kCollided;
}

// The root end is missing.
inline bool LacksRoot(StackState state) {
  return state == StackState::kTruncated || state == StackState::kBroken ||
         state >= StackState::kNoTable;
}

inline bool IsPresent(StackState state) {
  return state == StackState::kWhole || LacksRoot(state);
}

inline bool HasBothStacks(const ProfileSample& sample) {
  return IsPresent(sample.user_state) && IsPresent(sample.kernel_state);
}

// Which of a sample's two stacks.
enum class StackOf : uint8_t { kUser, kKernel };

// The place in kStackMarks of what that stack of a sample is shown with;
// nothing for one that is whole or that there is none of.
inline std::optional<size_t> MarkOf(StackState state, StackOf of) {
  constexpr size_t kTruncatedMark = 2;
  if (IsMissed(state)) return of == StackOf::kUser ? 0 : 1;
  if (!LacksRoot(state)) return std::nullopt;
  if (state < StackState::kNoTable) return kTruncatedMark;
  return kTruncatedMark + 1 + static_cast<size_t>(state) -
         static_cast<size_t>(StackState::kNoTable);
}

}  // namespace profd
