// SPDX-License-Identifier: Apache-2.0
#include "daemon/dump/lock_claim.h"

#include <gtest/gtest.h>
#include <linux/futex.h>

#include <array>
#include <vector>

namespace profd {
namespace {

constexpr uint32_t kOwn = 100;    // the waiter
constexpr uint32_t kOther = 200;  // who has the lock
constexpr uint32_t kShared = 0x80;
constexpr uint32_t kRobust = 0x10;
constexpr uint32_t kPi = 0x20;

// A thread that waits for a mutex as pthread_mutex_lock() does.
DumpedThread Waiter(const LockWords& words,
                    uint64_t operation = FUTEX_WAIT | FUTEX_PRIVATE_FLAG,
                    uint64_t value = 2) {
  DumpedThread thread;
  thread.pid = kOwn;
  thread.tid = kOwn;
  thread.own_tid = kOwn;
  thread.reason = {.calls = WaitCalls::kX8664, .call = 202, .state = 1};
  thread.arguments = {0x1000, operation, value};
  thread.lock_words = words;
  return thread;
}

std::optional<LockClaim> ClaimOf(const DumpedThread& thread) {
  const auto wait = FutexWaitOf(thread);
  return wait ? LockClaimOf(thread, *wait) : std::nullopt;
}

uint32_t HolderOf(const DumpedThread& thread) {
  const auto claim = ClaimOf(thread);
  return claim ? claim->own_tid : 0;
}

// A thread in futex(2) waits for a word; one in another call, or one that runs
// or is stopped, does not.
TEST(FutexWait, IsOfBlockedThreadsInFutex) {
  DumpedThread thread = Waiter({2, 0, kOther, 1, 0});
  const auto wait = FutexWaitOf(thread);
  ASSERT_TRUE(wait);
  EXPECT_EQ(wait->address, 0x1000u);
  EXPECT_EQ(wait->value, 2u);
  EXPECT_TRUE(wait->is_private);
  EXPECT_FALSE(wait->is_lock_pi);
  thread.reason.state = 4;
  EXPECT_FALSE(FutexWaitOf(thread));
  thread.reason.state = 1;
  thread.reason.runnable = true;
  EXPECT_FALSE(FutexWaitOf(thread));
  thread.reason.runnable = false;
  thread.reason.call = 201;
  EXPECT_FALSE(FutexWaitOf(thread));
  thread.reason.call = 202;
  thread.reason.calls = WaitCalls::kOther;
  EXPECT_FALSE(FutexWaitOf(thread));
  thread.reason.calls = WaitCalls::kX8664;
  thread.is_running = true;
  EXPECT_FALSE(FutexWaitOf(thread));
  EXPECT_FALSE(FutexWaitOf(Waiter({}, FUTEX_WAKE)));
}

// Each kind of mutex of glibc names its holder.
TEST(LockClaim, OfEachKindOfMutex) {
  for (const uint32_t kind : {0u, 2u, 3u, 0x100u, 0x203u}) {
    EXPECT_EQ(HolderOf(Waiter({2, 0, kOther, 1, kind})), kOther) << kind;
  }
  EXPECT_EQ(HolderOf(Waiter({2, 3, kOther, 1, 1})), kOther);
  const auto timed =
      Waiter({2, 0, kOther, 1, 0},
             FUTEX_WAIT_BITSET | FUTEX_PRIVATE_FLAG | FUTEX_CLOCK_REALTIME);
  EXPECT_EQ(HolderOf(timed), kOther);
  const auto shared = ClaimOf(Waiter({2, 0, kOther, 1, kShared}, FUTEX_WAIT));
  ASSERT_TRUE(shared);
  EXPECT_TRUE(shared->is_shared);
  constexpr uint32_t kWord = kOther | FUTEX_WAITERS;
  EXPECT_EQ(HolderOf(Waiter({kWord, 0, kOther, 1, kRobust}, FUTEX_WAIT, kWord)),
            kOther);
  EXPECT_EQ(HolderOf(Waiter({kWord, 0, kOther, 1, kPi},
                            FUTEX_LOCK_PI | FUTEX_PRIVATE_FLAG)),
            kOther);
}

// Words that do not all hold up name nobody.
TEST(LockClaim, IsNoneWhereAWordDoesNotHoldUp) {
  EXPECT_EQ(HolderOf(Waiter({1, 0, kOther, 1, 0})), 0u);  // nobody waits
  EXPECT_EQ(HolderOf(Waiter({0, 0, kOther, 1, 0})), 0u);  // it is free
  EXPECT_EQ(HolderOf(Waiter({2, 0, 0, 1, 0})), 0u);       // changes hands
  EXPECT_EQ(HolderOf(Waiter({2, 0, kOther, 0, 0})), 0u);  // nobody uses it
  EXPECT_EQ(HolderOf(Waiter({2, 1, kOther, 1, 0})), 0u);  // taken twice
  EXPECT_EQ(HolderOf(Waiter({2, 0, kOther, 1, 1})), 0u);  // taken never
  EXPECT_EQ(HolderOf(Waiter({2, 0, 1u << 31, 1, 0})), 0u);
  // No kind of mutex, or one with a ceiling.
  for (const uint32_t kind : {4u, 8u, 0x40u, 0x400u, 0x7f0e0012u, ~0u}) {
    EXPECT_EQ(HolderOf(Waiter({2, 0, kOther, 1, kind})), 0u) << kind;
  }
  // The call is not that of such a mutex.
  EXPECT_EQ(HolderOf(Waiter({2, 0, kOther, 1, 0}, FUTEX_WAIT)), 0u);
  EXPECT_EQ(HolderOf(Waiter({2, 0, kOther, 1, kShared})), 0u);
  EXPECT_EQ(HolderOf(Waiter({2, 0, kOther, 1, kPi})), 0u);
  EXPECT_EQ(HolderOf(Waiter({2, 0, kOther, 1, 0},
                            FUTEX_LOCK_PI | FUTEX_PRIVATE_FLAG)),
            0u);
  // A condition variable's word.
  EXPECT_EQ(HolderOf(Waiter({2, 0, kOther, 1, 0},
                            FUTEX_WAIT | FUTEX_PRIVATE_FLAG, 0)),
            0u);
  DumpedThread unread = Waiter({});
  unread.lock_words.reset();
  EXPECT_EQ(HolderOf(unread), 0u);
}

// A holder that is dead, or named in two ways, is none.
TEST(LockClaim, IsNoneOfDoubtfulTids) {
  constexpr uint32_t kWord = kOther | FUTEX_WAITERS;
  constexpr uint64_t kLockPi = FUTEX_LOCK_PI | FUTEX_PRIVATE_FLAG;
  EXPECT_EQ(
      HolderOf(Waiter({kWord | FUTEX_OWNER_DIED, 0, kOther, 1, kPi}, kLockPi)),
      0u);
  EXPECT_EQ(HolderOf(Waiter({kOther, 0, kOther, 1, kPi}, kLockPi)), 0u);
  EXPECT_EQ(HolderOf(Waiter({kWord, 0, kOther + 1, 1, kPi}, kLockPi)), 0u);
  EXPECT_EQ(HolderOf(Waiter({FUTEX_WAITERS, 0, 0, 1, kPi}, kLockPi)), 0u);
}

// A thread waits for itself only where the mutex would not have told it.
TEST(LockClaim, OfTheWaiterItself) {
  EXPECT_EQ(HolderOf(Waiter({2, 0, kOwn, 1, 0})), kOwn);
  EXPECT_EQ(HolderOf(Waiter({2, 0, kOwn, 1, 3})), kOwn);
  EXPECT_EQ(HolderOf(Waiter({2, 1, kOwn, 1, 1})), 0u);
  EXPECT_EQ(HolderOf(Waiter({2, 0, kOwn, 1, 2})), 0u);
  constexpr uint32_t kWord = kOwn | FUTEX_WAITERS;
  EXPECT_EQ(HolderOf(Waiter({kWord, 0, kOwn, 1, kPi},
                            FUTEX_LOCK_PI | FUTEX_PRIVATE_FLAG)),
            0u);
}

// The C library's functions that lock a mutex are known under all their names,
// near the leaf alone; others are not taken for them.
TEST(MutexLock, IsKnownByItsNames) {
  const auto in = [](std::vector<std::string_view> names) {
    return IsInMutexLock(names);
  };
  EXPECT_TRUE(in({"pthread_mutex_lock"}));
  EXPECT_TRUE(in({"[libc.so.6]", "[libc.so.6]", "___pthread_mutex_lock"}));
  EXPECT_TRUE(in({"__lll_lock_wait", "__GI___pthread_mutex_lock", "main"}));
  EXPECT_TRUE(in({"__futex_lock_pi64", "__pthread_mutex_lock_full"}));
  EXPECT_TRUE(in({"pthread_mutex_timedlock@@GLIBC_2.34"}));
  EXPECT_FALSE(in({}));
  EXPECT_FALSE(in({"[a.out]", "main"}));
  EXPECT_FALSE(in({"__lll_lock_wait_private", "malloc"}));
  EXPECT_FALSE(in({"futex_wait", "pthread_cond_wait"}));
  EXPECT_FALSE(in({"std::sys::sync::mutex::futex::Mutex::lock_contended"}));
  EXPECT_FALSE(in({"my_pthread_mutex_lock"}));
  EXPECT_FALSE(in({"a", "b", "c", "d", "pthread_mutex_lock"}));
}

}  // namespace
}  // namespace profd
