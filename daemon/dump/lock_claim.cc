// SPDX-License-Identifier: Apache-2.0
#include "daemon/dump/lock_claim.h"

#include <linux/futex.h>

#include <algorithm>
#include <array>

namespace profd {
namespace {

// System call 202 of x86-64's table.
constexpr uint32_t kFutexCall = 202;

// struct __pthread_mutex_s of 64-bit glibc, by words.
enum MutexWord : uint8_t { kLock, kCount, kOwner, kUsers, kKind };
// Bits of its kind (nptl/pthreadP.h).
constexpr uint32_t kTypeBits = 0x3;
constexpr uint32_t kRecursive = 1;
constexpr uint32_t kErrorCheck = 2;
constexpr uint32_t kRobust = 0x10;
constexpr uint32_t kPi = 0x20;
constexpr uint32_t kShared = 0x80;
constexpr uint32_t kElision = 0x100 | 0x200;
// Held, and waited for.
constexpr uint32_t kContended = 2;

// The lock's word is its holder's tid.
std::optional<uint32_t> HolderInWord(const LockWords& words) {
  const uint32_t tid = words[kLock] & FUTEX_TID_MASK;
  // Whoever waits has set FUTEX_WAITERS before (futex(2)): else this is another
  // lock by now.
  if (tid == 0 || (words[kLock] & FUTEX_OWNER_DIED) != 0 ||
      (words[kLock] & FUTEX_WAITERS) == 0 || words[kOwner] != tid) {
    return std::nullopt;
  }
  return tid;
}

std::optional<uint32_t> HolderBesideWord(const LockWords& words,
                                         const FutexWait& wait) {
  const uint32_t owner = words[kOwner];
  const bool is_recursive = (words[kKind] & kTypeBits) == kRecursive;
  // glibc waits while the word is 2 (lowlevellock.c), and counts how often one
  // has it for recursive ones only.
  if (words[kLock] != kContended || wait.value != kContended ||
      words[kUsers] == 0 || (words[kCount] != 0) != is_recursive ||
      owner == 0 || (owner & ~FUTEX_TID_MASK) != 0) {
    return std::nullopt;
  }
  return owner;
}

// Whether a thread that wants what it has waits for ever: some kinds of mutexes
// let it in or tell it.
bool MayWaitForItself(uint32_t kind) {
  const uint32_t type = kind & kTypeBits;
  return (kind & (kRobust | kPi)) == 0 && type != kRecursive &&
         type != kErrorCheck;
}

// "__GI___pthread_mutex_lock" and the like are one function.
std::string_view WithoutPrefix(std::string_view name) {
  const auto skip = [&] {
    name.remove_prefix(std::min(name.find_first_not_of('_'), name.size()));
  };
  skip();
  if (name.starts_with("GI_")) {
    name.remove_prefix(2);
    skip();
  }
  return name;
}

bool LocksMutex(std::string_view function) {
  constexpr auto kNames = std::to_array<std::string_view>(
      {"pthread_mutex_lock", "pthread_mutex_timedlock",
       "pthread_mutex_clocklock", "pthread_mutex_cond_lock",
       "pthread_mutex_lock_full", "pthread_mutex_cond_lock_full",
       "pthread_mutex_clocklock_common"});
  // "pthread_mutex_lock@@GLIBC_2.2.5", "pthread_mutex_lock.part.0".
  const std::string_view name = WithoutPrefix(function);
  return std::ranges::find(kNames, name.substr(0, name.find_first_of("@."))) !=
         kNames.end();
}

}  // namespace

std::optional<FutexWait> FutexWaitOf(const DumpedThread& thread) {
  const WaitReason& reason = thread.reason;
  if (thread.is_running || reason.runnable || IsHalted(reason) ||
      reason.calls != WaitCalls::kX8664 || reason.call != kFutexCall) {
    return std::nullopt;
  }
  const auto [address, operation, value] = thread.arguments;
  const auto command =
      static_cast<int>(operation & static_cast<uint32_t>(FUTEX_CMD_MASK));
  const bool is_lock_pi = command == FUTEX_LOCK_PI || command == FUTEX_LOCK_PI2;
  if (!is_lock_pi && command != FUTEX_WAIT && command != FUTEX_WAIT_BITSET &&
      command != FUTEX_WAIT_REQUEUE_PI) {
    return std::nullopt;
  }
  return FutexWait{.address = address,
                   .value = static_cast<uint32_t>(value),
                   .is_private = (operation & FUTEX_PRIVATE_FLAG) != 0,
                   .is_lock_pi = is_lock_pi};
}

std::optional<LockClaim> LockClaimOf(const DumpedThread& thread,
                                     const FutexWait& wait) {
  if (!thread.lock_words) return std::nullopt;
  const LockWords& words = *thread.lock_words;
  const uint32_t kind = words[kKind];
  // Others, as those with a ceiling, keep something else in the word.
  constexpr uint32_t kKnown = kTypeBits | kRobust | kPi | kShared | kElision;
  if ((kind & ~kKnown) != 0) return std::nullopt;
  const bool is_shared = (kind & kShared) != 0;
  // The kernel wakes who waits for a robust one as if it were shared.
  const bool waits_privately = !is_shared && (kind & kRobust) == 0;
  if (wait.is_private != waits_privately ||
      wait.is_lock_pi != ((kind & kPi) != 0)) {
    return std::nullopt;
  }
  const auto holder = (kind & (kRobust | kPi)) != 0
                          ? HolderInWord(words)
                          : HolderBesideWord(words, wait);
  if (!holder) return std::nullopt;
  if (!is_shared && *holder == thread.own_tid && !MayWaitForItself(kind)) {
    return std::nullopt;
  }
  return LockClaim{.own_tid = *holder, .is_shared = is_shared};
}

bool IsInMutexLock(std::span<const std::string_view> leaf_first) {
  return std::ranges::any_of(
      leaf_first.first(std::min(leaf_first.size(), kLockingFrames)),
      LocksMutex);
}

}  // namespace profd
