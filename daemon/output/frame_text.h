// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "daemon/profile/profile.h"

namespace profd {

// The parts of lines that people read.

// A name in a line that is known by its indent: as ksym::AppendPrintable, and
// spaces at its begin, with which it could be read as a line of another kind,
// become '_'.
void AppendLineName(std::string_view name, std::string& out);

// The frame's name; "[unknown]" if it has none.
void AppendFrameName(const Profile& profile, const Frame& frame,
                     std::string& out);

// Where the frame's code is: " [libc.so.6]", " [kernel]". Nothing where the
// name says that, as it does in place of a symbol.
void AppendFrameModule(const Profile& profile, const Frame& frame,
                       std::string& out);

}  // namespace profd
