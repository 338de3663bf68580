// SPDX-License-Identifier: Apache-2.0
#pragma once

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

// The holder of a lock, as its words have it. They are the program's: it can
// write there what it likes, so this is no more than a claim.
struct LockClaim {
  uint32_t own_tid = 0;    // in the holder's pid namespace
  bool is_shared = false;  // threads of other processes can hold it
};

// Reads the words as those of a pthread_mutex_t of glibc that one thread has
// and another one waits for: its word says that it is held and waited for, its
// kind is one that there is and goes with the call, and a holder is named.
// Nothing where anything of it does not hold up.
std::optional<LockClaim> LockClaimOf(const DumpedThread& thread,
                                     const FutexWait& wait);

// A function on the stack of a thread that waits.
struct CallerName {
  std::string_view function;
  std::string_view module;  // path of its file
};

// Whether the innermost functions, leaf first, are those of the C library that
// lock a mutex. Other code has such words as well.
bool IsInMutexLock(std::span<const CallerName> leaf_first);

}  // namespace profd
