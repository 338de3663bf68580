// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "daemon/profile/frame_kinds.h"

namespace profd::fleet {

// A frame of a stack in the database.
struct StackFrame {
  const FrameKind* kind = nullptr;  // null: a mark for what is missing
  std::string_view name = {};
  std::string_view module = {};

  friend bool operator==(const StackFrame&, const StackFrame&) = default;
};

}  // namespace profd::fleet
