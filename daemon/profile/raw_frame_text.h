// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "daemon/profile/raw_profile.h"
#include "daemon/profile/raw_stack_table.h"

namespace profd {

// How such texts are written.
struct RawFrameStyle {
  bool with_threads = false;  // a waker's thread is told
  // What may stand of a command, which its owner chose.
  std::string (*plain)(std::string_view command);
};

// What a frame of these stacks that is no address says to a reader who names
// addresses itself: a text in brackets. Kinds that have one are rows of a
// table, others say their number.
std::string RawFrameText(const RawFrame& frame, const RawProfile& profile,
                         const RawFrameStyle& style);

}  // namespace profd
