// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>

namespace profd {

// Cuts time at multiples of the interval since 1970 in UTC, so that profiles
// of all hosts begin and end together. Follows a clock that is set: an interval
// ends whenever the present is in another one.
class IntervalClock {
 public:
  IntervalClock(std::chrono::seconds interval, uint64_t now_unix_ns)
      : length_ns_(static_cast<uint64_t>(interval.count()) * 1'000'000'000),
        current_(now_unix_ns / length_ns_) {}

  // Whether another interval has begun since the last true.
  bool Passed(uint64_t now_unix_ns) {
    const uint64_t interval = now_unix_ns / length_ns_;
    if (interval == current_) return false;
    current_ = interval;
    return true;
  }
  std::chrono::nanoseconds UntilNext(uint64_t now_unix_ns) const {
    return std::chrono::nanoseconds(length_ns_ - now_unix_ns % length_ns_);
  }

 private:
  uint64_t length_ns_;
  uint64_t current_;
};

}  // namespace profd
