// SPDX-License-Identifier: Apache-2.0
#include "daemon/dump/lock_holders.h"

#include <gtest/gtest.h>

#include <chrono>

namespace profd {
namespace {

using Holders = std::vector<std::optional<size_t>>;
using Cycles = std::vector<std::vector<size_t>>;

DumpedThread Thread(uint32_t pid, uint32_t tid, uint32_t own_tid) {
  DumpedThread thread;
  thread.pid = pid;
  thread.tid = tid;
  thread.own_tid = own_tid;
  return thread;
}

ClaimedLock Claim(size_t waiter, uint32_t own_tid, bool is_shared = false) {
  return {.waiter = waiter,
          .address = 0x1000,
          .claim = {.own_tid = own_tid, .is_shared = is_shared}};
}

bool SharesNothing(uint32_t /*pid*/, uint32_t /*other*/, uint64_t /*at*/) {
  return false;
}
bool SharesAll(uint32_t /*pid*/, uint32_t /*other*/, uint64_t /*at*/) {
  return true;
}

// A private lock is held by a thread of its process, whatever tid is named.
TEST(FindHolders, PrivateLocksStayInTheirProcess) {
  const std::vector<DumpedThread> threads = {
      Thread(10, 10, 10), Thread(10, 11, 11), Thread(20, 20, 20)};
  const std::vector<ClaimedLock> claims = {Claim(0, 11), Claim(1, 20)};
  EXPECT_EQ(FindHolders(threads, claims, SharesAll),
            (Holders{1, std::nullopt, std::nullopt}));
}

// A tid is that of the holder's own pid namespace.
TEST(FindHolders, TidsAreThoseOfTheNamespace) {
  const std::vector<DumpedThread> threads = {
      Thread(10, 10, 1), Thread(10, 11, 2), Thread(20, 20, 1),
      Thread(20, 21, 2), Thread(30, 2, 0)};
  const std::vector<ClaimedLock> claims = {Claim(0, 2), Claim(3, 1),
                                           Claim(4, 2)};
  EXPECT_EQ(FindHolders(threads, claims, SharesNothing),
            (Holders{1, std::nullopt, std::nullopt, 2, std::nullopt}));
}

// A shared lock is held by who maps its memory; two that could be meant are
// none.
TEST(FindHolders, SharedLocksNeedSharedMemory) {
  const std::vector<DumpedThread> threads = {
      Thread(10, 10, 10), Thread(20, 20, 5), Thread(30, 30, 5)};
  const std::vector<ClaimedLock> claims = {Claim(0, 5, true)};
  EXPECT_EQ(FindHolders(threads, claims, SharesNothing).front(), std::nullopt);
  EXPECT_EQ(FindHolders(threads, claims, SharesAll).front(), std::nullopt);
  const auto only30 = [](uint32_t pid, uint32_t other, uint64_t address) {
    EXPECT_EQ(other, 10u);
    EXPECT_EQ(address, 0x1000u);
    return pid == 30;
  };
  EXPECT_EQ(FindHolders(threads, claims, only30).front(), 2u);
}

// However many claims there are, memory is asked for a bounded number of times.
TEST(FindHolders, QuestionsAreBounded) {
  std::vector<DumpedThread> threads;
  std::vector<ClaimedLock> claims;
  for (uint32_t i = 1; i <= 20000; ++i) {
    threads.push_back(Thread(i, i, 7));
    claims.push_back(Claim(i - 1, 7, true));
  }
  size_t asked = 0;
  const auto begin = std::chrono::steady_clock::now();
  const Holders holders =
      FindHolders(threads, claims, [&](uint32_t, uint32_t, uint64_t) {
        ++asked;
        return false;
      });
  EXPECT_EQ(asked, kMaxSharedQuestions);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(5));
  EXPECT_EQ(holders[1], std::nullopt);
}

// Cycles of any length are found once, chains into them and others are not.
TEST(FindCycles, FindsEachOnce) {
  EXPECT_EQ(FindCycles(Holders{}), Cycles{});
  EXPECT_EQ(FindCycles(Holders{0}), (Cycles{{0}}));
  EXPECT_EQ(FindCycles(Holders{1, 2, std::nullopt}), Cycles{});
  EXPECT_EQ(FindCycles(Holders{1, 2, 0}), (Cycles{{0, 1, 2}}));
  // 0 and 5 lead into the cycle of 3, 1 and 4; 6 and 7 are another.
  EXPECT_EQ(FindCycles(Holders{3, 4, std::nullopt, 1, 3, 0, 7, 6}),
            (Cycles{{1, 4, 3}, {6, 7}}));
}

// A long chain costs no more than its length.
TEST(FindCycles, IsLinear) {
  Holders holders(1'000'000);
  for (size_t i = 1; i < holders.size(); ++i) holders[i] = i - 1;
  EXPECT_EQ(FindCycles(holders), Cycles{});
  holders[0] = holders.size() - 1;
  const Cycles cycles = FindCycles(holders);
  ASSERT_EQ(cycles.size(), 1u);
  EXPECT_EQ(cycles.front().size(), holders.size());
}

}  // namespace
}  // namespace profd
