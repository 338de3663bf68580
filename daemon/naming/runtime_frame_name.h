// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "daemon/profile/profile.h"
#include "daemon/profile/runtime_frame.h"

namespace profd {

// Whether names of runtimes' functions end in the line, "(app.py:42)".
enum class RuntimeLines : uint8_t { kDrop, kShow };

// Gives the frame the function's name with its file, e.g.
// "Handler.get (app.py)", and what else is known of it.
void NameRuntimeFrame(const RuntimeFrame& known, RuntimeLines lines,
                      ProfileBuilder& builder, Frame& frame);

}  // namespace profd
