// SPDX-License-Identifier: Apache-2.0
#include "daemon/unwind/slot_space.h"

#include <algorithm>
#include <iterator>

namespace profd {

std::optional<uint32_t> SlotSpace::Take(uint32_t count) {
  // The first run that is long enough: the rest of it stays in one piece, and
  // the long runs at the end stay whole for large tables.
  const auto run = std::ranges::find_if(
      free_, [&](const auto& candidate) { return candidate.second >= count; });
  if (run == free_.end()) return std::nullopt;
  const auto [first, length] = *run;
  free_.erase(run);
  if (length > count) free_[first + count] = length - count;
  return first;
}

uint32_t SlotSpace::Longest() const {
  uint32_t longest = 0;
  for (const auto& [first, count] : free_) longest = std::max(longest, count);
  return longest;
}

void SlotSpace::Free(uint32_t first, uint32_t count) {
  // Not yet to others: a program that runs may have been led here.
  waiting_.emplace_back(first, count);
}

void SlotSpace::Recycle() {
  for (const auto& [first, count] : waiting_) {
    Insert(first, count);
  }
  waiting_.clear();
}

void SlotSpace::Insert(uint32_t first, uint32_t count) {
  // Runs that touch become one, or large tables would find no place.
  auto next = free_.lower_bound(first);
  if (next != free_.end() && first + count == next->first) {
    count += next->second;
    next = free_.erase(next);
  }
  if (next != free_.begin()) {
    const auto previous = std::prev(next);
    if (previous->first + previous->second == first) {
      previous->second += count;
      return;
    }
  }
  free_.emplace(first, count);
}

}  // namespace profd
