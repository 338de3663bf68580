// SPDX-License-Identifier: Apache-2.0
#include "daemon/profile/wait_text.h"

#include <string_view>

#include "daemon/profile/syscall_names.h"

namespace profd {
namespace {

std::string RunnableText(const WaitReason& reason) {
  if (reason.is_new) return "new";
  // By its state alone one that was woken and one that was stopped are equal.
  if (reason.is_unseen) return {};
  if (!reason.preempted) return "woken";
  if (reason.quota) return "quota";
  return reason.calls == WaitCalls::kX8664 &&
                 SyscallNameX8664(reason.call) == "sched_yield"
             ? "yield"
             : "preempted";
}

// The system call, or what else the thread was in.
std::string PlaceText(const WaitReason& reason) {
  if (reason.calls == WaitCalls::kNone) return "kernel thread";
  if (reason.calls == WaitCalls::kOther) {
    return "32-bit call " + std::to_string(reason.call);
  }
  if (reason.call == WaitReason::kNoCall) {
    // Outside of calls it is a page that user code waits for like this.
    return IsUninterruptible(reason) || reason.io ? "page fault"
                                                  : "no system call";
  }
  const std::string_view name = SyscallNameX8664(reason.call);
  return name.empty() ? "system call " + std::to_string(reason.call)
                      : std::string(name);
}

std::string BlockedText(const WaitReason& reason) {
  if ((reason.state & WaitReason::kStopped) != 0) return "stopped";
  if ((reason.state & WaitReason::kTraced) != 0) return "traced";
  if ((reason.state & WaitReason::kFrozen) != 0) return "frozen";
  std::string text = PlaceText(reason);
  if (reason.io) {
    text += ", iowait";
  } else if (IsUninterruptible(reason)) {
    text += ", D";
  }
  return text;
}

}  // namespace

std::string ReasonText(const WaitReason& reason) {
  return reason.runnable ? RunnableText(reason) : BlockedText(reason);
}

std::string WaitText(const WaitReason& reason) {
  std::string text = reason.runnable ? "[runnable" : "[blocked";
  const std::string why = ReasonText(reason);
  if (!why.empty()) text += ": " + why;
  return text + "]";
}

}  // namespace profd
