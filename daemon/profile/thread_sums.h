// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace profd {

// For how long a thread was in each state, by the kernel's own sums.
struct StateTimes {
  uint64_t running_ns = 0;
  uint64_t runnable_ns = 0;
  uint64_t blocked_ns = 0;

  uint64_t total_ns() const { return running_ns + runnable_ns + blocked_ns; }
  StateTimes& operator+=(const StateTimes& other);
  friend auto operator<=>(const StateTimes&, const StateTimes&) = default;
};

// The time of all threads while they were sampled: exact, whatever was sampled.
struct ThreadSums {
  struct Thread {
    uint32_t pid = 0;
    uint32_t tid = 0;
    // A capture's may be any bytes but NUL, at most 15; JSON's is what
    // BoundName() gives.
    std::string comm;
    StateTimes times;

    friend auto operator<=>(const Thread&, const Thread&) = default;
  };
  // Threads that are told one by one, at the most.
  static constexpr size_t kMaxThreads = 4096;

  StateTimes sum;  // of all
  // All, those that are not listed too; below 2^32 in one file; 0: not known.
  uint64_t count = 0;
  std::vector<Thread> threads;  // the first ones, in no order

  // Those in order.
  std::vector<Thread> Sorted() const;
  // Adds a capture that follows this one: a thread of both is one.
  ThreadSums& operator+=(const ThreadSums& other);
  friend bool operator==(const ThreadSums&, const ThreadSums&) = default;
};

}  // namespace profd
