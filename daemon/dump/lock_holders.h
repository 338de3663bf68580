// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "daemon/dump/lock_claim.h"
#include "daemon/profile/dumped_thread.h"

namespace profd {

// A lock that a thread waits for: a claim of the thread with this index.
struct ClaimedLock {
  size_t waiter = 0;
  uint64_t address = 0;
  LockClaim claim;
};

// Whether the process maps the memory that the other one has at the address,
// shared by both. Asked for locks that processes share, kMaxSharedQuestions
// times at the most.
using SharesMemory =
    std::function<bool(uint32_t pid, uint32_t other_pid, uint64_t address)>;
inline constexpr size_t kMaxSharedQuestions = 256;

// By thread, the index of the one that holds what it waits for. Only one that
// can hold it is believed to: a thread that was there, of the waiter's process
// or, if the lock is shared, of one that maps its memory. Where more than one
// could be meant there is none. O(threads + claims).
std::vector<std::optional<size_t>> FindHolders(
    std::span<const DumpedThread> threads, std::span<const ClaimedLock> claims,
    const SharesMemory& shares_memory);

// Each cycle of threads that wait for the next one, the last one for the first,
// once; the one with the smallest index comes first. O(threads).
std::vector<std::vector<size_t>> FindCycles(
    std::span<const std::optional<size_t>> holders);

}  // namespace profd
