// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "daemon/capture/thread_times.h"
#include "daemon/profile/profile.h"

namespace profd {

enum class ThreadLines : uint8_t { kSum, kEach };

// What threads did by the kernel's own sums, and how much of it the samples
// come to, which have all their kinds; kEach: then a line for each thread, with
// nanoseconds. Nothing where no waits were sampled.
std::vector<std::string> ThreadTimeLines(const ThreadTimes& times,
                                         const Profile& profile,
                                         ThreadLines lines);

}  // namespace profd
