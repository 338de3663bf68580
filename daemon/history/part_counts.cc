// SPDX-License-Identifier: Apache-2.0
#include "daemon/history/part_counts.h"

#include "daemon/profile/profile.h"

namespace profd::history {

// As CountStackEnds() of daemon/capture counts them: each cause once a sample.
void PartCounts::Take(const Row& row) {
  const Series& series = tables_.series[row.series];
  const auto user = static_cast<StackState>(series.user_state);
  const auto kernel = static_cast<StackState>(series.kernel_state);
  const auto count = [&](bool is_damaged, DamageCause cause) {
    if (!is_damaged) return;
    parts_[row.part].damaged_by_cause[static_cast<size_t>(cause)] += row.count;
  };
  const auto either = [&](StackState state) {
    return user == state || kernel == state;
  };
  count(either(StackState::kFaulted), DamageCause::kStackFault);
  count(either(StackState::kCollided), DamageCause::kCollision);
  count(either(StackState::kTruncated), DamageCause::kTruncated);
  count(user == StackState::kBroken || user >= StackState::kNoTable,
        DamageCause::kBroken);
}

Accounting PartCounts::Of(uint32_t part) const {
  Accounting accounting = accountings_.Of(tables_.parts[part]);
  const Count& count = parts_[part];
  if (count.left_out == 0) return accounting;
  // As many as were checked to be there.
  accounting.emitted -= count.left_out;
  accounting.taken -= count.left_out;
  accounting.damaged_by_cause = count.damaged_by_cause;
  accounting.user_stack_ends = {};
  accounting.helped_by_frame_pointers = 0;
  return accounting;
}

}  // namespace profd::history
