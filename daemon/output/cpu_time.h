// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "daemon/profile/profile.h"

namespace profd {

// The CPU time in seconds that one sample stands for; nothing where the event
// does not count time.
std::optional<double> SecondsPerSample(const CaptureMetadata& metadata);

// CPUs that were sampled; 0: not known.
size_t CountCpus(const CaptureMetadata& metadata);

// "ran 3.52 s of CPU time in 10.0 s: 0.35 of 2 CPUs", without what idle CPUs
// did; empty where the event does not count time or the duration is not known.
std::string CpuTimeLine(const Profile& profile);

// The CPUs that ran the samples on average, without idle ones.
std::optional<double> CpusUsed(const Profile& profile);

}  // namespace profd
