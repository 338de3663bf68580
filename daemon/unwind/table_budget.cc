// SPDX-License-Identifier: Apache-2.0
#include "daemon/unwind/table_budget.h"

namespace profd {
namespace {

// Upper ends of what building and placing one file takes.
constexpr std::chrono::milliseconds kFixedCost(15);
constexpr uint64_t kBytesPerMillisecond = 1 << 20;

}  // namespace

std::optional<size_t> LongestUnused(std::span<const RoomHolder> holders,
                                    SteadyClock::time_point before) {
  std::optional<size_t> longest;
  for (size_t i = 0; i < holders.size(); ++i) {
    const RoomHolder& holder = holders[i];
    if (!holder.can_go || holder.used > before) continue;
    if (!longest || holder.used < holders[*longest].used) longest = i;
  }
  return longest;
}

bool IsReadyBefore(SteadyClock::time_point deadline,
                   SteadyClock::time_point now, uint64_t file_bytes) {
  return now + kFixedCost +
             std::chrono::milliseconds(file_bytes / kBytesPerMillisecond) <
         deadline;
}

}  // namespace profd
