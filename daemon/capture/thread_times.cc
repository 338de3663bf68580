// SPDX-License-Identifier: Apache-2.0
#include "daemon/capture/thread_times.h"

#include <algorithm>
#include <cstring>

namespace profd {
namespace {

// How much `now` is more than `before`. Clocks and sums are read one after the
// other, so that the later one may be a little less.
uint64_t Since(uint64_t before, uint64_t now) {
  return now > before ? now - before : 0;
}

}  // namespace

void ThreadTimes::AddFirst(const wait_thread_record& record) {
  first_[record.tid] = record;
  begin_ns_ = record.now_ns;
}

void ThreadTimes::AddLast(const wait_thread_record& record) {
  if (record.last == WAIT_SAMPLING_ENDED) {
    at_end_[record.tid] = record.start_ns;
    // A thread that ends after it was walked over sends a second record, of its
    // end. The first one has all of its time until sampling ended.
  } else if (const auto known = at_end_.find(record.tid);
             known != at_end_.end() && known->second == record.start_ns) {
    return;
  }
  // One that began later has done nothing before.
  wait_thread_record first = {};
  first.now_ns = record.start_ns;
  const auto known = first_.find(record.tid);
  if (known != first_.end() && known->second.start_ns == record.start_ns) {
    first = known->second;
    first_.erase(known);
  } else if (record.start_ns < begin_ns_) {
    // It was there when sampling began, and what it had done by then is
    // unknown.
    return;
  }
  StateTimes times = {
      .running_ns = Since(first.running_ns, record.running_ns),
      .runnable_ns = Since(first.runnable_ns, record.runnable_ns)};
  times.blocked_ns = Since(times.running_ns + times.runnable_ns,
                           Since(first.now_ns, record.now_ns));
  sums_.sum += times;
  ++sums_.count;
  AddLife({.pid = record.tgid, .tid = record.tid, .ns = times.total_ns()});
  if (sums_.threads.size() >= ThreadSums::kMaxThreads) return;
  sums_.threads.push_back(
      {.pid = record.tgid,
       .tid = record.tid,
       .comm = {record.comm, ::strnlen(record.comm, sizeof(record.comm))},
       .times = times});
}

void ThreadTimes::AddLife(const ThreadLife& life) {
  if (life.ns < kLeastLifeNs) return;
  if (lives_.size() >= kMaxLives) {
    ++lives_dropped_;
    return;
  }
  lives_.push_back(life);
}

}  // namespace profd
