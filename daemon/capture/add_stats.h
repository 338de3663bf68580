// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "bpf/profile_abi.h"

namespace profd {

// A new counter needs a line here, or what it counts is lost silently.
static_assert(sizeof(profile_stats) == 6 * sizeof(uint64_t));

// Adds the counters of a CPU, or of a sampler, to those of others.
inline void AddStats(const profile_stats& more, profile_stats& sum) {
  sum.taken += more.taken;
  sum.lost_counts_full += more.lost_counts_full;
  sum.lost_ring_full += more.lost_ring_full;
  sum.hints_dropped += more.hints_dropped;
  sum.follow_full += more.follow_full;
  sum.copies_refused += more.copies_refused;
}

}  // namespace profd
