// SPDX-License-Identifier: Apache-2.0
#include "daemon/history/flame_nodes.h"

#include <algorithm>
#include <functional>

#include "daemon/base/bounded_sum.h"

namespace profd::history {

void FindTotals(std::span<const FlameNode> nodes,
                std::vector<uint64_t>& totals) {
  totals.assign(nodes.size(), 0);
  for (size_t i = nodes.size(); --i > 0;) {
    AddUpTo64Bits(totals[i], nodes[i].value);
    AddUpTo64Bits(totals[nodes[i].parent], totals[i]);
  }
}

std::optional<uint64_t> RareTotals::Find() {
  if (largest_.size() <= most_) return std::nullopt;
  KeepLargest();
  return least_;
}

// One more than stay.
void RareTotals::KeepLargest() {
  std::ranges::nth_element(largest_,
                           largest_.begin() + static_cast<ptrdiff_t>(most_),
                           std::greater());
  least_ = largest_[most_];
  largest_.resize(most_ + 1);
}

}  // namespace profd::history
