// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "bpf/waiting_abi.h"
#include "daemon/profile/parked.h"

namespace profd {

// How long threads ran, wanted to run and were blocked, by the kernel's own
// sums: exact, whatever was sampled. Not thread-safe.
class ThreadTimes {
 public:
  struct Times {
    uint64_t running_ns = 0;
    uint64_t runnable_ns = 0;
    uint64_t blocked_ns = 0;

    uint64_t total_ns() const { return running_ns + runnable_ns + blocked_ns; }
    Times& operator+=(const Times& other);
    friend bool operator==(const Times&, const Times&) = default;
  };
  struct Thread {
    uint32_t pid = 0;
    uint32_t tid = 0;
    std::string comm;  // any bytes but NUL, at most 15
    Times times;
  };

  // A thread as it was when sampling began.
  void AddFirst(const wait_thread_record& record);
  // One as it was when it ended, or when sampling did. The first record counts
  // of a thread that ended just after sampling did.
  void AddLast(const wait_thread_record& record);

  void SetStatistics(const wait_stats_record& record) {
    statistics_ = record.stats;
    walks_ = record.walks;
  }
  const wait_stats& statistics() const { return statistics_; }
  const wait_walk_stats& walks() const { return walks_; }
  // Wakers that samples name and that were forgotten by then.
  void AddForgottenWakers(uint64_t count) { forgotten_wakers_ += count; }
  uint64_t forgotten_wakers() const { return forgotten_wakers_; }

  // All together.
  const Times& sum() const { return sum_; }
  size_t count() const { return count_; }
  // One by one, the first kMaxThreads of them.
  const std::vector<Thread>& threads() const { return threads_; }
  static constexpr size_t kMaxThreads = 4096;
  // How long they lived, of the first kMaxLives that lived for kLeastLifeNs:
  // where many threads come and go most are shorter.
  const std::vector<ThreadLife>& lives() const { return lives_; }
  // Those that lived as long and were too many.
  size_t lives_dropped() const { return lives_dropped_; }
  static constexpr size_t kMaxLives = size_t{1} << 20;
  static constexpr uint64_t kLeastLifeNs = 10'000'000;

 private:
  void AddLife(const ThreadLife& life);

  std::unordered_map<uint32_t, wait_thread_record> first_;  // by tid
  std::unordered_map<uint32_t, uint64_t> at_end_;  // when they began, by tid
  std::vector<Thread> threads_;
  std::vector<ThreadLife> lives_;
  size_t lives_dropped_ = 0;
  Times sum_;
  size_t count_ = 0;
  uint64_t begin_ns_ = 0;  // of sampling
  wait_stats statistics_ = {};
  wait_walk_stats walks_ = {};
  uint64_t forgotten_wakers_ = 0;
};

}  // namespace profd
