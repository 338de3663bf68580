// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace profd {

// Whether the process of that number is the one that started then, in
// nanoseconds of CLOCK_BOOTTIME: what was read of /proc/PID before was its own.
// As exact as /proc/PID/stat, which has clock ticks. Some 10 us.
bool IsSameProcess(uint32_t pid, uint64_t start_ns);

}  // namespace profd
