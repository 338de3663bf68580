// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "daemon/profile/dumped_thread.h"

namespace profd {

// The word that a thread waits for in futex(2), by its system call alone.
struct FutexWait {
  uint64_t address = 0;
  uint32_t value = 0;       // that the word had when it began to wait
  bool is_private = false;  // to its process
  bool is_lock_pi = false;  // the kernel knows the holder: LOCK_PI, LOCK_PI2
};

// Nothing: it runs, is runnable or stopped, or does not wait in such a call.
std::optional<FutexWait> FutexWaitOf(const DumpedThread& thread);

// The holder of a lock by the lock's words. They are the program's: it can
// write there what it likes, so this is no more than a claim.
struct LockClaim {
  uint32_t own_tid = 0;    // in the holder's pid namespace
  bool is_shared = false;  // threads of other processes can hold it
};

// The claim of the words if they are those of glibc's pthread_mutex_t: the
// first one says that it is held and waited for, its kind is one that there is
// and goes with the call, and a holder is named. Nothing where anything of it
// does not hold up.
std::optional<LockClaim> LockClaimOf(const DumpedThread& thread,
                                     const FutexWait& wait);

// The system call's function and those of the library that lead to it.
inline constexpr size_t kLockingFrames = 4;

// Whether one of the first kLockingFrames functions, leaf first, has the name
// of one of the C library's that lock a mutex. Other code has such words as
// well.
bool IsInMutexLock(std::span<const std::string_view> leaf_first);

}  // namespace profd
