// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "bpf/waiting_abi.h"
#include "daemon/profile/parked.h"
#include "daemon/profile/thread_sums.h"

namespace profd {

// How long threads ran, wanted to run and were blocked, by the kernel's own
// sums: exact, whatever was sampled. Not thread-safe.
class ThreadTimes {
 public:
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

  // All together, and one by one the first ThreadSums::kMaxThreads of them.
  const ThreadSums& sums() const { return sums_; }
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
  std::vector<ThreadLife> lives_;
  size_t lives_dropped_ = 0;
  ThreadSums sums_;
  uint64_t begin_ns_ = 0;  // of sampling
  wait_stats statistics_ = {};
  wait_walk_stats walks_ = {};
  uint64_t forgotten_wakers_ = 0;
};

}  // namespace profd
