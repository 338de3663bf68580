// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

namespace profd::history {

// A node of a tree of whole stacks. Node 0 is the whole, and its children are
// the roots: whose stacks these are. Callers come before their callees.
struct FlameNode {
  uint32_t parent = 0;
  uint32_t is_kernel : 1 = 0;  // on the kernel's side of the stack
  uint32_t frame : 31 = 0;     // of a root its number
  uint64_t count = 0;          // of samples that end here
  uint64_t value = 0;          // what they stand for
};

// A frame's number has 31 bits; there are never so many.
inline constexpr uint32_t kAllFrames = (uint32_t{1} << 31) - 1;

// The frame, on either side, that stands for callees that are too small.
inline constexpr uint32_t kRareFrame = kAllFrames;

// What each node stands for with all that it calls: never more than its caller.
// `totals` may have others, whose memory is used again.
void FindTotals(std::span<const FlameNode> nodes,
                std::vector<uint64_t>& totals);

// Finds the largest of many totals that is rare where `most` are to stay.
// Memory: twice as many as stay, however many there are; the next ones take it
// over.
class RareTotals {
 public:
  // Forgets those before.
  void Begin(size_t most) {
    most_ = most;
    least_ = std::nullopt;
    largest_.clear();
  }
  void Add(uint64_t total) {
    if (least_ && total <= *least_) return;
    largest_.push_back(total);
    if (largest_.size() > 2 * most_ + kSlack) KeepLargest();
  }
  // Nothing where there are no more than stay.
  std::optional<uint64_t> Find();

 private:
  // A cut costs something even where few are to stay.
  static constexpr size_t kSlack = 64;

  void KeepLargest();

  size_t most_ = 0;
  std::optional<uint64_t> least_;  // more than stay are no less than this
  std::vector<uint64_t> largest_;
};

// Makes the smallest nodes of a tree kRareFrame of their callers. What it made
// stays until it is asked again, and its memory is used again then.
class TreePruner {
 public:
  // Whether a node that is no root stands for callees, in whatever way.
  using IsMark = std::function<bool(const FlameNode& node)>;

  // Leaves `most` nodes at the most, and all roots and marks besides.
  std::span<const FlameNode> Prune(std::span<const FlameNode> nodes,
                                   size_t most, const IsMark& is_mark);
  // The most that a node was of that did not stay; 0: all did.
  uint64_t rare_up_to() const { return rare_up_to_; }

 private:
  uint32_t Add(const FlameNode& node);
  uint32_t MarkOf(uint32_t parent, bool is_kernel);

  std::vector<uint64_t> totals_;
  RareTotals order_;
  std::vector<uint32_t> places_;  // by node: where it is among those that stay
  std::vector<FlameNode> kept_;
  // By node that stays, and side; 0: there is none.
  std::vector<std::array<uint32_t, 2>> marks_;
  uint64_t rare_up_to_ = 0;
};

}  // namespace profd::history
