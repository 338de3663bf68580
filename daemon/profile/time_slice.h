// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace profd {

// When a sample was taken, to 20 ms of CLOCK_REALTIME: which of the slices that
// make up the time since 1970 it was, of the last 21 minutes. 0: nobody asked.
using TimeSlice = uint16_t;
inline constexpr TimeSlice kNoSlice = 0;
inline constexpr uint64_t kSliceNs = 20'000'000;
inline constexpr uint64_t kDifferentSlices = 65'535;

// `number`: of the slice, from 1970 on.
constexpr TimeSlice SliceOf(uint64_t number) {
  return static_cast<TimeSlice>(number % kDifferentSlices + 1);
}

// How many slices after that number it is, where it is not before it. The
// slice is not kNoSlice.
constexpr uint64_t SlicesAfter(uint64_t number, TimeSlice slice) {
  return (kDifferentSlices + (slice - 1) - number % kDifferentSlices) %
         kDifferentSlices;
}

}  // namespace profd
