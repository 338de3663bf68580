// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <ctime>
#include <utility>

#include "daemon/base/now_ns.h"

namespace profd {

// Adds the CPU time of the thread that has it, from then on, in nanoseconds.
// For one thread; the sum is everybody's, and lives longer.
class CountedCpu {
 public:
  explicit CountedCpu(std::atomic<uint64_t>& sum) : sum_(sum) {}
  ~CountedCpu() { Count(); }
  CountedCpu(const CountedCpu&) = delete;
  CountedCpu& operator=(const CountedCpu&) = delete;

  // What has come since the last time. Often, as the service looks at its use
  // every few seconds.
  void Count() {
    const uint64_t now = NowNs(CLOCK_THREAD_CPUTIME_ID);
    sum_ += now - std::exchange(counted_, now);
  }

 private:
  std::atomic<uint64_t>& sum_;
  uint64_t counted_ = NowNs(CLOCK_THREAD_CPUTIME_ID);
};

}  // namespace profd
