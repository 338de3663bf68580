// SPDX-License-Identifier: Apache-2.0
#include "daemon/profile/raw_frame_text.h"

#include <algorithm>
#include <array>
#include <string>

#include "daemon/profile/raw_waker.h"
#include "daemon/profile/wait_reason.h"
#include "daemon/profile/wait_text.h"

namespace profd {
namespace {

// What the texts of all kinds are made of.
struct Source {
  const RawFrame& frame;
  const RawProfile& profile;
  const RawFrameStyle& style;
};

struct Row {
  RawFrameKind kind;
  std::string (*text)(const Source& source);
};

std::string ReasonText(const Source& source) {
  return WaitText(WaitReasonOf(source.frame));
}

// The waker's own stack is of another process, and not shown.
std::string WakerText(const Source& source) {
  const RawWakers& wakers = source.profile.wakers;
  const auto found = wakers.find(source.frame.value);
  if (found == wakers.end()) return std::string(kNoWakerMark);
  const RawWaker& waker = found->second;
  if (waker.is_interrupt) return std::string(kInterruptMark);
  std::string text = "[woken by " + source.style.plain(waker.comm.view()) +
                     ", process " + std::to_string(waker.process.pid);
  if (source.style.with_threads && waker.tid != 0) {
    text += ", thread " + std::to_string(waker.tid);
  }
  return text + ']';
}

constexpr std::array kRows = {Row{kWaitReason, &ReasonText},
                              Row{kWaker, &WakerText}};

}  // namespace

std::string RawFrameText(const RawFrame& frame, const RawProfile& profile,
                         const RawFrameStyle& style) {
  const auto* const row = std::ranges::find(kRows, frame.kind, &Row::kind);
  if (row == kRows.end()) {
    return "[frame of kind " + std::to_string(frame.kind) + ']';
  }
  return row->text({frame, profile, style});
}

}  // namespace profd
