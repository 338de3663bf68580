// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "daemon/profile/raw_stack_table.h"

namespace profd {

// The kind of RawFrame that says why a thread waited; the last one of its
// kernel stack, on the side of the root. `unit` is a WaitCalls and `value` the
// rest.
inline constexpr RawFrameKind kWaitReason = 0x20;

// By which table system calls are numbered.
enum class WaitCalls : uint8_t {
  kNone = 0,  // the thread has no user code
  kX8664 = 1,
  kOther = 2,
};

struct WaitReason {
  WaitCalls calls = WaitCalls::kNone;
  uint32_t call = 0;   // kNoCall: in none
  uint16_t state = 0;  // of the kernel's task_struct
  bool runnable = false;
  bool preempted = false;  // it did not want to wait
  bool is_new = false;     // it had not run yet
  bool is_unseen = false;  // nobody saw how it came to want a CPU
  bool io = false;         // the kernel counts it as waiting for a disk
  bool quota = false;      // its cgroup had used up its CPU time

  static constexpr uint32_t kNoCall = 0xffffffff;
  // Bits of `state` that mean the same in all kernels (sched.h).
  static constexpr uint16_t kUninterruptible = 0x2;
  static constexpr uint16_t kStopped = 0x4;
  static constexpr uint16_t kTraced = 0x8;
  static constexpr uint16_t kNoLoad = 0x400;
  static constexpr uint16_t kFrozen = 0x8000;
};

// Somebody keeps the thread from running.
constexpr bool IsHalted(const WaitReason& reason) {
  return (reason.state & (WaitReason::kStopped | WaitReason::kTraced |
                          WaitReason::kFrozen)) != 0;
}

// No signal ends the wait, and the kernel counts it as load: "D" of ps.
constexpr bool IsUninterruptible(const WaitReason& reason) {
  return (reason.state & WaitReason::kUninterruptible) != 0 &&
         (reason.state & WaitReason::kNoLoad) == 0;
}

// `frame` is of kWaitReason. Any numbers have a meaning.
constexpr WaitReason WaitReasonOf(const RawFrame& frame) {
  const auto flags = static_cast<uint16_t>(frame.value >> 48);
  return {.calls = frame.unit <= 1 ? static_cast<WaitCalls>(frame.unit)
                                   : WaitCalls::kOther,
          .call = static_cast<uint32_t>(frame.value),
          .state = static_cast<uint16_t>(frame.value >> 32),
          .runnable = (flags & 1) != 0,
          .preempted = (flags & 2) != 0,
          .is_new = (flags & 4) != 0,
          .is_unseen = (flags & 0x100) != 0,
          .io = (flags & 8) != 0,
          .quota = (flags & 0x10) != 0};
}

}  // namespace profd
