// SPDX-License-Identifier: Apache-2.0
#include "daemon/history/flame_nodes.h"

#include <algorithm>
#include <functional>

#include "daemon/base/bounded_sum.h"

namespace profd::history {

std::vector<uint64_t> TotalsOf(std::span<const FlameNode> nodes) {
  std::vector<uint64_t> totals(nodes.size());
  for (size_t i = nodes.size(); --i > 0;) {
    AddUpTo64Bits(totals[i], nodes[i].value);
    AddUpTo64Bits(totals[nodes[i].parent], totals[i]);
  }
  return totals;
}

std::optional<uint64_t> RareTotal(std::vector<uint64_t> totals, size_t most) {
  if (totals.size() <= most) return std::nullopt;
  std::ranges::nth_element(totals, totals.begin() + static_cast<int64_t>(most),
                           std::greater());
  return totals[most];
}

}  // namespace profd::history
