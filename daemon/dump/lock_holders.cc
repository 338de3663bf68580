// SPDX-License-Identifier: Apache-2.0
#include "daemon/dump/lock_holders.h"

#include <algorithm>
#include <unordered_map>

#include "ksym/base/keyed_hash.h"

namespace profd {
namespace {

class HolderFinder {
 public:
  HolderFinder(std::span<const DumpedThread> threads,
               const SharesMemory& shares_memory)
      : threads_(threads), shares_memory_(shares_memory) {
    for (size_t i = 0; i < threads.size(); ++i) {
      const DumpedThread& thread = threads[i];
      if (thread.own_tid == 0) continue;
      in_process_.emplace(KeyOf(thread.pid, thread.own_tid), i);
      by_own_tid_[thread.own_tid].push_back(i);
    }
  }

  std::optional<size_t> Find(const ClaimedLock& lock) {
    const uint32_t pid = threads_[lock.waiter].pid;
    const auto own = in_process_.find(KeyOf(pid, lock.claim.own_tid));
    std::optional<size_t> found;
    if (own != in_process_.end()) found = own->second;
    if (!lock.claim.is_shared) return found;
    const auto named = by_own_tid_.find(lock.claim.own_tid);
    if (named == by_own_tid_.end()) return found;
    for (const size_t other : named->second) {
      const uint32_t other_pid = threads_[other].pid;
      if (other_pid == pid) continue;
      if (asked_ == kMaxSharedQuestions) return std::nullopt;
      ++asked_;
      if (!shares_memory_(other_pid, pid, lock.address)) continue;
      // Two threads have that number in their namespaces: no holder is better
      // than a wrong one.
      if (found) return std::nullopt;
      found = other;
    }
    return found;
  }

 private:
  static uint64_t KeyOf(uint32_t pid, uint32_t own_tid) {
    return uint64_t{pid} << 32 | own_tid;
  }

  std::span<const DumpedThread> threads_;
  const SharesMemory& shares_memory_;
  std::unordered_map<uint64_t, size_t, ksym::NumberHash> in_process_;
  std::unordered_map<uint32_t, std::vector<size_t>> by_own_tid_;
  size_t asked_ = 0;
};

}  // namespace

std::vector<std::optional<size_t>> FindHolders(
    std::span<const DumpedThread> threads, std::span<const ClaimedLock> claims,
    const SharesMemory& shares_memory) {
  std::vector<std::optional<size_t>> holders(threads.size());
  if (claims.empty()) return holders;
  HolderFinder finder(threads, shares_memory);
  for (const ClaimedLock& lock : claims) {
    holders[lock.waiter] = finder.Find(lock);
  }
  return holders;
}

std::vector<std::vector<size_t>> FindCycles(
    std::span<const std::optional<size_t>> holders) {
  std::vector<std::vector<size_t>> cycles;
  // By which walk a thread was seen first, counted from 1; 0: by none.
  std::vector<size_t> walk_of(holders.size());
  for (size_t start = 0; start < holders.size(); ++start) {
    // Each waits for one at the most, so the way from it ends or comes back.
    std::optional<size_t> at = start;
    while (at && walk_of[*at] == 0) {
      walk_of[*at] = start + 1;
      at = holders[*at];
    }
    if (!at || walk_of[*at] != start + 1) continue;
    std::vector<size_t> cycle;
    const size_t first = *at;
    size_t next = first;
    do {
      cycle.push_back(next);
      next = holders[next].value_or(first);
    } while (next != first);
    // The first by number is in front, wherever the walk met the cycle.
    std::ranges::rotate(cycle, std::ranges::min_element(cycle));
    cycles.push_back(std::move(cycle));
  }
  return cycles;
}

}  // namespace profd
