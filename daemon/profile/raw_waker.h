// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string_view>

#include "daemon/profile/comm.h"
#include "daemon/profile/raw_stack_table.h"
#include "ksym/process/process_image.h"

namespace profd {

// The kind of RawFrame that says who ended a wait; in the kernel's stack of the
// wait, before its reason. `unit` is 0 and `value` a WakerId, or 0 where nobody
// was seen to.
inline constexpr RawFrameKind kWaker = 0x21;

// The mark in place of a waker's command where nobody was seen to end the wait.
inline constexpr std::string_view kNoWakerMark = "[waker unknown]";
// The same where it was an interrupt, of which nothing tells which one it was.
inline constexpr std::string_view kInterruptMark = "[woken by interrupt]";

// Within one capture no number is used twice.
using WakerId = uint64_t;

// A waker of threads, with its stacks at that moment, which have no wakers.
struct RawWaker {
  // An interrupt has the kernel's stack alone, of which only the first frames
  // are its own: those behind are of what it hit.
  bool is_interrupt = false;
  ksym::ProcessId process = {};
  uint32_t tid = 0;  // 0 unless threads are told apart
  Comm comm;
  StackId user_stack = kNoStack;
  StackId kernel_stack = kNoStack;

  friend bool operator==(const RawWaker&, const RawWaker&) = default;
};

using RawWakers = std::map<WakerId, RawWaker>;

}  // namespace profd
