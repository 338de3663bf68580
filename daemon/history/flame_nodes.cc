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

uint32_t TreePruner::Add(const FlameNode& node) {
  kept_.push_back(node);
  marks_.push_back({});
  return static_cast<uint32_t>(kept_.size() - 1);
}

uint32_t TreePruner::MarkOf(uint32_t parent, bool is_kernel) {
  const size_t side = is_kernel ? 1 : 0;
  if (marks_[parent][side] == 0) {
    const uint32_t mark =
        Add({.parent = parent, .is_kernel = is_kernel, .frame = kRareFrame});
    marks_[parent][side] = mark;
  }
  return marks_[parent][side];
}

// A node's total is never more than its caller's, so the callers of a node that
// stays stay as well.
std::span<const FlameNode> TreePruner::Prune(std::span<const FlameNode> nodes,
                                             size_t most,
                                             const IsMark& is_mark) {
  rare_up_to_ = 0;
  // Node 0 does not count.
  if (nodes.size() <= most + 1) return nodes;
  FindTotals(nodes, totals_);
  // Marks are made where they are needed, and take no other node's place.
  order_.Begin(most);
  for (size_t i = 1; i < nodes.size(); ++i) {
    if (nodes[i].parent == 0 || !is_mark(nodes[i])) order_.Add(totals_[i]);
  }
  const std::optional<uint64_t> rare = order_.Find();
  if (!rare) return nodes;
  rare_up_to_ = *rare;
  places_.assign(nodes.size(), 0);
  kept_.assign(1, FlameNode{});
  marks_.assign(1, {});
  for (size_t i = 1; i < nodes.size(); ++i) {
    FlameNode node = nodes[i];
    node.parent = places_[node.parent];
    // Roots stay however small: they say whose stacks these are.
    const bool stays = nodes[i].parent == 0 || totals_[i] > *rare;
    const bool is_made = nodes[i].parent != 0 && node.frame == kRareFrame;
    if (stays && !is_made) {
      places_[i] = Add(node);
      continue;
    }
    const FlameNode& caller = kept_[node.parent];
    const bool is_within = !stays && caller.parent != 0 && is_mark(caller);
    places_[i] =
        is_within ? node.parent : MarkOf(node.parent, node.is_kernel != 0);
    AddUpTo64Bits(kept_[places_[i]].count, node.count);
    AddUpTo64Bits(kept_[places_[i]].value, node.value);
  }
  return kept_;
}

}  // namespace profd::history
