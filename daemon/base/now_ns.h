// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <time.h>

#include <cstdint>

namespace profd {

inline constexpr uint64_t kNsPerSecond = 1'000'000'000;

// The clock's time, in nanoseconds. The sampler's and the side band's times are
// of CLOCK_MONOTONIC.
inline uint64_t NowNs(clockid_t clock = CLOCK_MONOTONIC) {
  timespec now = {};
  ::clock_gettime(clock, &now);
  return static_cast<uint64_t>(now.tv_sec) * kNsPerSecond +
         static_cast<uint64_t>(now.tv_nsec);
}

}  // namespace profd
