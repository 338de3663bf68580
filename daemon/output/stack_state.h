#pragma once

#include <string_view>

#include "daemon/profile/profile.h"

namespace profd {

// bcc's words for a stack that was there but could not be taken.
inline constexpr std::string_view kMissedUserStack = "[Missed User Stack]";
inline constexpr std::string_view kMissedKernelStack = "[Missed Kernel Stack]";

// The root of a stack that lacks it.
inline constexpr std::string_view kTruncatedMark = "[truncated]";

inline bool IsMissed(StackState state) {
  return state == StackState::kFaulted || state == StackState::kCollided;
}

inline bool IsPresent(StackState state) {
  return state == StackState::kWhole || state == StackState::kTruncated ||
         state == StackState::kBroken;
}

// The root end is missing.
inline bool LacksRoot(StackState state) {
  return state == StackState::kTruncated || state == StackState::kBroken;
}

inline bool HasBothStacks(const ProfileSample& sample) {
  return IsPresent(sample.user_state) && IsPresent(sample.kernel_state);
}

}  // namespace profd
