// SPDX-License-Identifier: Apache-2.0
#include "daemon/base/table_memory.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

namespace profd {
namespace {

using std::chrono::milliseconds;

// As much as there is can be taken, and one byte more waits until something is
// given back.
TEST(TableMemoryTest, WaitsForWhatIsNotThere) {
  TableMemory memory(100);
  auto first = memory.Take(60);
  const auto second = memory.Take(40);
  std::atomic<bool> has_third = false;
  std::thread other([&] {
    const auto third = memory.Take(1);
    has_third = true;
  });
  std::this_thread::sleep_for(milliseconds(50));
  EXPECT_FALSE(has_third);
  first.reset();
  other.join();
  EXPECT_TRUE(has_third);
}

// What is larger than all has its turn when nobody else has any.
TEST(TableMemoryTest, GivesALargeOneItsTurn) {
  TableMemory memory(100);
  auto small = memory.Take(1);
  std::atomic<bool> has_large = false;
  std::thread other([&] {
    const auto large = memory.Take(1000);
    has_large = true;
  });
  std::this_thread::sleep_for(milliseconds(50));
  EXPECT_FALSE(has_large);
  small.reset();
  other.join();
  EXPECT_TRUE(has_large);
  EXPECT_NE(memory.Take(100), nullptr);
}

// However many threads take some, there is never more than the bound.
TEST(TableMemoryTest, KeepsTheBound) {
  TableMemory memory(100);
  std::atomic<int> used = 0;
  std::atomic<int> most = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&, i] {
      for (int turn = 0; turn < 500; ++turn) {
        const int bytes = 20 + 7 * i;
        const auto held = memory.Take(static_cast<uint64_t>(bytes));
        const int now = used += bytes;
        int before = most;
        while (before < now && !most.compare_exchange_weak(before, now)) {
        }
        std::this_thread::yield();
        used -= bytes;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_LE(most, 100);
  EXPECT_GE(most, 41);
}

}  // namespace
}  // namespace profd
