// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "daemon/profile/profile.h"
#include "ksym/base/result.h"

namespace profd {

// Reads folded stacks, "comm;root;...;leaf COUNT" in each line, as
// ksym-profile, stackcollapse-*.pl and other profilers write them. A frame that
// ends in FrameKind::folded_suffix is of that kind, and _[j] and _[w] of other
// programs are dropped; where there are no such marks "-" parts user and kernel
// frames. Empty lines
// and those that begin with '#' are skipped; others that are no stack are left
// out and counted in a warning. Fails when nothing is left.
ksym::Result<Profile> ReadFolded(std::string_view text);

}  // namespace profd
