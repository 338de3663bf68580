// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
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

// What each node stands for with all that it calls: never more than its caller.
std::vector<uint64_t> TotalsOf(std::span<const FlameNode> nodes);

// The largest of these totals that is rare where `most` are to stay; nothing
// where there are no more.
std::optional<uint64_t> RareTotal(std::vector<uint64_t> totals, size_t most);

}  // namespace profd::history
