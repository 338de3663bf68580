// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "bpf/profile_abi.h"
#include "daemon/capture/sampler.h"
#include "daemon/profile/accounting.h"
#include "ksym/process/process_history.h"

namespace profd {

// The losses and times of one interval, from counters that only grow since the
// start. Not thread-safe.
class IntervalAccounts {
 public:
  // Reports that the side band lost; told with the interval that ends next.
  void AddLostReports(uint64_t count) { lost_reports_ += count; }

  // Adds what the sampler lost of that set, and what the history of processes
  // could not hold, since the last call for it. Returns what that means for the
  // profile, in words.
  std::vector<std::string> Count(
      uint32_t set, const profile_stats& now,
      const ksym::ProcessHistory::Statistics& history, Accounting& accounting);
  // Copies of stacks, since the start.
  uint64_t copies_refused() const { return copies_refused_; }

  // Adds how long the samplers ran; `now_ns` is of CLOCK_MONOTONIC. Reading
  // their clocks interrupts their CPUs, so it is done once in 0.9 s; the
  // interval that is read next has what those before it left out.
  void CountTimes(const Samplers& samplers, uint64_t now_ns,
                  Accounting& accounting);
  // The next CountTimes() is the last one.
  void ReadTimesNext() { times_read_ns_ = 0; }

 private:
  std::array<profile_stats, PROFILE_SETS> stats_ = {};
  uint64_t lost_reports_ = 0;
  uint64_t histories_dropped_ = 0;
  uint64_t copies_refused_ = 0;
  EventTimes times_;
  uint64_t times_read_ns_ = 0;
};

}  // namespace profd
