// SPDX-License-Identifier: Apache-2.0
#include "daemon/profile/thread_sums.h"

#include <gtest/gtest.h>

#include <vector>

namespace profd {
namespace {

ThreadSums Of(const std::vector<ThreadSums::Thread>& threads, uint64_t more) {
  ThreadSums sums;
  sums.count = threads.size() + more;
  sums.threads = threads;
  for (const auto& thread : threads) sums.sum += thread.times;
  return sums;
}

// Time of two captures is added up, and a thread of both is one.
TEST(ThreadSumsTest, AddsCapturesUp) {
  ThreadSums sums = Of({{1, 2, "a", {10, 20, 30}}, {1, 3, "b", {1, 1, 1}}}, 5);
  sums += Of({{1, 3, "b", {2, 3, 4}}, {1, 4, "c", {7, 8, 9}}}, 1);
  EXPECT_EQ(sums.sum, (StateTimes{20, 32, 44}));
  EXPECT_EQ(sums.count, 2u + 5 + 1 + 1);
  EXPECT_EQ(sums.Sorted(),
            (std::vector<ThreadSums::Thread>{{1, 2, "a", {10, 20, 30}},
                                             {1, 3, "b", {3, 4, 5}},
                                             {1, 4, "c", {7, 8, 9}}}));
}

// What has no room in the list is in the sum and counted.
TEST(ThreadSumsTest, ListsSoMany) {
  ThreadSums sums;
  for (uint32_t tid = 1; tid < ThreadSums::kMaxThreads; ++tid) {
    sums += Of({{1, tid, "a", {1, 0, 0}}}, 0);
  }
  sums += Of({{2, 1, "a", {1, 0, 0}}}, 0);
  EXPECT_EQ(sums.threads.size(), ThreadSums::kMaxThreads);
  sums += Of({{2, 2, "a", {1, 0, 0}}}, 0);
  EXPECT_EQ(sums.threads.size(), ThreadSums::kMaxThreads);
  EXPECT_EQ(sums.count, ThreadSums::kMaxThreads + 1);
  EXPECT_EQ(sums.sum.running_ns, ThreadSums::kMaxThreads + 1);
}

}  // namespace
}  // namespace profd
