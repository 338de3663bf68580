// SPDX-License-Identifier: Apache-2.0
#include "daemon/profile/accounting.h"

namespace profd {

std::string_view Name(LossCause cause) {
  switch (cause) {
    case LossCause::kCountsFull:
      return "counts-full";
    case LossCause::kRingFull:
      return "ring-full";
    case LossCause::kStackMissing:
      return "stack-missing";
  }
  return "unknown";
}

std::string_view Name(DamageCause cause) {
  switch (cause) {
    case DamageCause::kStackFault:
      return "stack-fault";
    case DamageCause::kCollision:
      return "collision";
    case DamageCause::kTruncated:
      return "truncated";
    case DamageCause::kBroken:
      return "broken";
  }
  return "unknown";
}

std::string_view Name(StackEnd end) {
  switch (end) {
    case StackEnd::kOutermost:
      return "outermost";
    case StackEnd::kZeroFramePointer:
      return "zero-frame-pointer";
    case StackEnd::kDepthLimit:
      return "depth-limit";
    case StackEnd::kNoTable:
      return "no-table";
    case StackEnd::kNoMapping:
      return "no-mapping";
    case StackEnd::kBadRead:
      return "bad-read";
    case StackEnd::kUnsupported:
      return "unsupported";
    case StackEnd::kNoProgress:
      return "no-progress";
    case StackEnd::kFramePointers:
      return "frame-pointers";
    case StackEnd::kNotYet:
      return "not-yet";
    case StackEnd::kNotWalked:
      return "not-walked";
    case StackEnd::kBeyondCopy:
      return "beyond-copy";
  }
  return "unknown";
}

ProcessLoss& ProcessLoss::operator+=(const ProcessLoss& other) {
  hints_dropped += other.hints_dropped;
  reports_lost += other.reports_lost;
  histories_dropped += other.histories_dropped;
  return *this;
}

Accounting& Accounting::operator+=(const Accounting& other) {
  taken += other.taken;
  emitted += other.emitted;
  for (size_t i = 0; i < kLossCauses; ++i) {
    lost_by_cause[i] += other.lost_by_cause[i];
  }
  for (size_t i = 0; i < kDamageCauses; ++i) {
    damaged_by_cause[i] += other.damaged_by_cause[i];
  }
  for (size_t i = 0; i < kStackEnds; ++i) {
    user_stack_ends[i] += other.user_stack_ends[i];
  }
  helped_by_frame_pointers += other.helped_by_frame_pointers;
  processes += other.processes;
  time_enabled_ns += other.time_enabled_ns;
  time_running_ns += other.time_running_ns;
  return *this;
}

}  // namespace profd
