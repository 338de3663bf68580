// SPDX-License-Identifier: Apache-2.0
#include "daemon/capture/thread_times.h"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

namespace profd {
namespace {

wait_thread_record Thread(uint32_t tid, uint64_t start_ns, uint64_t now_ns) {
  wait_thread_record record = {};
  record.tgid = 1;
  record.tid = tid;
  record.start_ns = start_ns;
  record.now_ns = now_ns;
  std::memcpy(record.comm, "app", 4);
  return record;
}

wait_thread_record With(wait_thread_record record, uint64_t running,
                        uint64_t runnable) {
  record.running_ns = running;
  record.runnable_ns = runnable;
  return record;
}

TEST(ThreadTimesTest, OfOneThatWasThereOnlyTheCaptureCounts) {
  ThreadTimes times;
  times.AddFirst(With(Thread(5, 100, 1000), 300, 200));
  times.AddLast(With(Thread(5, 100, 3000), 700, 500));
  EXPECT_EQ(times.sums().sum, (StateTimes{400, 300, 1300}));
  ASSERT_EQ(times.sums().threads.size(), 1u);
  EXPECT_EQ(times.sums().threads[0].comm, "app");
  EXPECT_EQ(times.sums().threads[0].times.total_ns(), 2000u);
}

TEST(ThreadTimesTest, OfANewOneAllCounts) {
  ThreadTimes times;
  times.AddFirst(With(Thread(5, 100, 1000), 300, 200));
  // The same id, another thread.
  times.AddLast(With(Thread(5, 1500, 2500), 600, 100));
  EXPECT_EQ(times.sums().sum, (StateTimes{600, 100, 300}));
}

// It was there, but nobody knows since when it ran how long.
TEST(ThreadTimesTest, WhatIsNotKnownIsInNoSum) {
  ThreadTimes times;
  times.AddFirst(Thread(5, 100, 1000));
  times.AddLast(With(Thread(6, 900, 2000), 600, 100));
  EXPECT_EQ(times.sums().count, 0u);
  EXPECT_EQ(times.sums().sum, StateTimes());
}

// Programs are there a little longer than sampling lasts.
TEST(ThreadTimesTest, OneThatEndsJustAfterCountsOnce) {
  ThreadTimes times;
  wait_thread_record record = With(Thread(5, 1500, 2500), 600, 100);
  record.last = WAIT_SAMPLING_ENDED;
  times.AddLast(record);
  record.last = WAIT_THREAD_ENDED;
  record.now_ns = 2600;
  times.AddLast(record);
  EXPECT_EQ(times.sums().count, 1u);
  // The same id, another thread.
  record.start_ns = 2550;
  times.AddLast(record);
  EXPECT_EQ(times.sums().count, 2u);
}

// Whether one is parked a short life does not tell.
TEST(ThreadTimesTest, LivesAreThoseThatLastAWhile) {
  constexpr uint64_t kLeast = ThreadTimes::kLeastLifeNs;
  ThreadTimes times;
  times.AddFirst(Thread(5, 100, 1000));
  times.AddLast(Thread(5, 100, 1000 + kLeast));
  times.AddLast(Thread(6, 2000, 2000 + kLeast - 1));
  EXPECT_EQ(times.lives(), (std::vector<ThreadLife>{{1, 5, kLeast}}));
  EXPECT_EQ(times.lives_dropped(), 0u);
}

// Sums that are read a moment apart may contradict each other by as much.
TEST(ThreadTimesTest, NothingIsNegative) {
  ThreadTimes times;
  times.AddFirst(With(Thread(5, 100, 1000), 300, 200));
  times.AddLast(With(Thread(5, 100, 2000), 1400, 100));
  EXPECT_EQ(times.sums().sum, (StateTimes{1100, 0, 0}));
}

}  // namespace
}  // namespace profd
