// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "daemon/profile/wait_reason.h"

namespace profd {

// Why a thread waited: "futex", "fsync, iowait", "preempted"; empty: not known.
std::string ReasonText(const WaitReason& reason);

// The same behind what it waited for: "[blocked: futex]", "[runnable: woken]",
// "[runnable]".
std::string WaitText(const WaitReason& reason);

}  // namespace profd
