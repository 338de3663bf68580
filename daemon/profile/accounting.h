// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <string_view>

#include "daemon/profile/stack_end.h"

namespace profd {

// Why a sample that was taken is not in the output.
enum class LossCause : uint8_t {
  kCountsFull,    // the BPF map of counts had no room for a new key
  kRingFull,      // a new stack's frames did not fit the ring buffer
  kStackMissing,  // a count came out whose frames never did
};
inline constexpr size_t kLossCauses = 3;

// Why a sample that is in the output has an incomplete stack.
enum class DamageCause : uint8_t {
  kStackFault,  // the kernel could not walk the stack
  kCollision,   // stackid store: another stack holds the bucket
  kTruncated,   // deeper than the depth limit: the root end is missing
  kBroken,      // the root end is missing for another reason: IsBroken()
};
inline constexpr size_t kDamageCauses = 4;

// Losses that can cost names, but no sample.
struct ProcessLoss {
  uint64_t hints_dropped = 0;  // hints that a process was sampled
  uint64_t reports_lost = 0;   // of forks, execs, mappings and exits
  // Times that the history of a process had no room.
  uint64_t histories_dropped = 0;

  ProcessLoss& operator+=(const ProcessLoss& other);
  friend bool operator==(const ProcessLoss&, const ProcessLoss&) = default;
};

// Names used in the summary, in JSON and in docs/formats.md.
std::string_view Name(LossCause cause);    // e.g. "counts-full"
std::string_view Name(DamageCause cause);  // e.g. "stack-fault"

// Where every sample went. taken == emitted + lost(), always.
struct Accounting {
  uint64_t taken = 0;
  uint64_t emitted = 0;
  std::array<uint64_t, kLossCauses> lost_by_cause = {};
  std::array<uint64_t, kDamageCauses> damaged_by_cause = {};
  // Emitted samples that have a user stack: how its walk ended, and how
  // many were in part walked along frame pointers for want of a table.
  std::array<uint64_t, kStackEnds> user_stack_ends = {};
  uint64_t helped_by_frame_pointers = 0;
  ProcessLoss processes = {};
  // Summed over the events. running < enabled: the kernel multiplexed or
  // throttled the counter, and samples were never taken.
  uint64_t time_enabled_ns = 0;
  uint64_t time_running_ns = 0;

  uint64_t lost() const {
    return std::accumulate(lost_by_cause.begin(), lost_by_cause.end(),
                           uint64_t{0});
  }
  // The question of --strict.
  bool AnythingLost() const {
    return lost() != 0 || time_running_ns < time_enabled_ns ||
           std::accumulate(damaged_by_cause.begin(), damaged_by_cause.end(),
                           uint64_t{0}) != 0;
  }
  Accounting& operator+=(const Accounting& other);
  friend bool operator==(const Accounting&, const Accounting&) = default;
};

}  // namespace profd
