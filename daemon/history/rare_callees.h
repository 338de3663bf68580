// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "daemon/profile/frame_kinds.h"
#include "ksym/symbolizer.h"

namespace profd::history {

// The frame that stands for callees that are too small for a flame graph, or
// were too rare to be kept. One frame on each side of a stack, whoever made it:
// what was folded on the disk and what is too small to show are one box.
inline constexpr std::string_view kRareCallees = "[rare callees]";

// No function that has a name has this reason, and no nameless one that name.
// Pictures give it the colour of what is missing.
inline constexpr ksym::Unresolved kRareReason = ksym::Unresolved::kNoSymbol;

constexpr const FrameKind& RareKind(bool is_kernel) {
  return is_kernel ? kKernelFrame : kJitFrame;
}

}  // namespace profd::history
