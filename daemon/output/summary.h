// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "daemon/profile/profile.h"

namespace profd {

// What heads a picture: "HOST: 1234 samples", without a host "1234 samples"; of
// waits "HOST: 4.2 s of time of threads, blocked", and of other values "HOST:
// 9000 bytes of alloc".
std::string ProfileTitle(const Profile& profile);

// The same of another kind of its samples, or of their sum, which is so many of
// the kind's unit: "HOST: 4.2 s of time of CPUs, cpu".
std::string KindTitle(std::string_view host, const SampleKind& kind,
                      uint64_t sum);

// The counts of all stacks together.
uint64_t SamplesOf(const Profile& profile);

// What heads a table, printable: "1975 samples, 0 lost; cpu-clock at 99 Hz for
// 10.0 s on myhost".
std::string CaptureLine(const Profile& profile);

// What became of the samples, for stderr when a capture ends; no newline at
// its end. A line each follows when the events did not run all the time, and
// when symbol tables did not fit.
//   990 samples taken, 980 emitted, 10 lost (counts-full 10: raise
//   --hash-storage-size), 3 with incomplete stacks (truncated 3: ...)
std::string SummaryLine(const Profile& profile);

}  // namespace profd
