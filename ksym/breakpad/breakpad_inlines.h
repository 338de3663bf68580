// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "ksym/base/function_batch.h"

namespace ksym {

// An INLINE line: the body of a function within another one, at a level of
// nesting; 0 is directly in the function.
struct BreakpadInline {
  uint64_t level = 0;
  std::string_view name;
  uint32_t call_file = 0;
  uint32_t call_line = 0;
  std::vector<AddressRange> ranges;
};

// Puts the INLINE lines of one function, which come in any order, into a tree:
// each into the one of the level above that has its first address. Appends it
// to the batch in preorder and returns how many are in none. O(n log n).
size_t AppendBreakpadInlines(std::span<BreakpadInline> inlines,
                             FunctionBatch& batch);

}  // namespace ksym
