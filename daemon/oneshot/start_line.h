// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "daemon/oneshot/options.h"
#include "daemon/profile/raw_profile.h"

namespace profd {

// What is sampled, how and where, for stderr when a capture begins:
//   Sampling at 99 Hertz of all threads by user + kernel stack for 5 secs.
//   [event cpu-clock, CPUs 0-3]
std::string StartLine(const ProfileOptions& options,
                      const CaptureMetadata& metadata);

}  // namespace profd
