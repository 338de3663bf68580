// SPDX-License-Identifier: Apache-2.0
#include "daemon/profile/thread_sums.h"

#include <algorithm>
#include <map>
#include <utility>

namespace profd {

StateTimes& StateTimes::operator+=(const StateTimes& other) {
  running_ns += other.running_ns;
  runnable_ns += other.runnable_ns;
  blocked_ns += other.blocked_ns;
  return *this;
}

std::vector<ThreadSums::Thread> ThreadSums::Sorted() const {
  std::vector<Thread> sorted = threads;
  std::ranges::sort(sorted);
  return sorted;
}

ThreadSums& ThreadSums::operator+=(const ThreadSums& other) {
  std::map<std::pair<uint32_t, uint32_t>, size_t> places;
  for (size_t i = 0; i < threads.size(); ++i) {
    places.emplace(std::pair(threads[i].pid, threads[i].tid), i);
  }
  sum += other.sum;
  count += other.count;
  for (const Thread& thread : other.threads) {
    const auto known = places.find({thread.pid, thread.tid});
    if (known != places.end()) {
      threads[known->second].times += thread.times;
      // It is in both counts.
      --count;
    } else if (threads.size() < kMaxThreads) {
      threads.push_back(thread);
    }
  }
  return *this;
}

}  // namespace profd
