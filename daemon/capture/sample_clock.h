// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "bpf/profile_abi.h"
#include "daemon/profile/time_slice.h"

namespace profd {

// One moment by two clocks, which go on alike from there: what a capture says
// of the time. The sampler's slices are those of `unix_ns`.
struct SampleClock {
  uint64_t monotonic_ns = 0;
  uint64_t unix_ns = 0;

  static_assert(kSliceNs == PROFILE_SLICE_NS);

  // For BpfObject::SetSlicePhase().
  uint64_t SlicePhase() const {
    return (kSliceNs + unix_ns % kSliceNs - monotonic_ns % kSliceNs) % kSliceNs;
  }
  // The TimeSlice that a key's slice means, where its sample was taken within
  // ten minutes of this moment.
  TimeSlice SliceOfKey(uint16_t slice) const {
    const uint64_t here = (monotonic_ns + SlicePhase()) / kSliceNs;
    const auto later =
        static_cast<int16_t>(slice - static_cast<uint16_t>(here));
    return SliceOf(unix_ns / kSliceNs + static_cast<uint64_t>(int64_t{later}));
  }
};

}  // namespace profd
