// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ksym {

// Functions with their source lines and inlined calls, as a reader of debug
// data hands them on. Addresses are those of the file's own headers.

// A path, split as its users store it: "directory/base".
struct SourceFile {
  std::string directory;
  std::string base;

  friend bool operator==(const SourceFile&, const SourceFile&) = default;
};

// From `address` to the next row's, or the function's end, the code is of this
// line. Line 0 is unknown, and so is column 0.
struct LineRow {
  uint64_t address = 0;
  uint32_t file = 0;
  uint32_t line = 0;
  uint16_t column = 0;

  friend bool operator==(const LineRow&, const LineRow&) = default;
};

// Half-open, not empty.
struct AddressRange {
  uint64_t start = 0;
  uint64_t end = 0;

  bool Contains(uint64_t address) const {
    return address >= start && address < end;
  }
  friend bool operator==(const AddressRange&, const AddressRange&) = default;
};

// Whether one of `ranges`, which rise and are disjoint, has a byte of `code`.
// O(log ranges).
inline bool TouchesAny(std::span<const AddressRange> ranges,
                       const AddressRange& code) {
  const auto next =
      std::ranges::upper_bound(ranges, code.start, {}, &AddressRange::end);
  return next != ranges.end() && next->start < code.end;
}

// The body of a function within another one. A list of them is a tree in
// preorder: depth is 1 for those directly in the function, and a node's parent
// is the last one before it with a smaller depth.
struct InlinedCall {
  std::string_view name;
  uint32_t depth = 1;
  uint32_t call_file = 0;  // where it is called; 0: unknown
  uint32_t call_line = 0;
  uint32_t first_range = 0;
  uint32_t range_count = 0;  // at least one; sorted, disjoint
  uint32_t call_column = 0;  // 0: unknown
};

// One contiguous piece of code. A function of several pieces is several of
// these. Indices are into the batch.
struct FunctionInfo {
  std::string_view name;
  AddressRange range;
  uint32_t first_line = 0;
  uint32_t line_count = 0;  // rows rise and are within the range
  uint32_t first_inline = 0;
  uint32_t inline_count = 0;
};

// Some functions and what they refer to. Names are views of the debug data,
// which has to outlive the batch, or of `made_names`, so a copy is no batch.
struct FunctionBatch {
  std::vector<SourceFile> files;  // [0] stands for an unknown file
  std::vector<FunctionInfo> functions;
  std::vector<LineRow> lines;
  std::vector<InlinedCall> inlines;
  std::vector<AddressRange> ranges;
  std::deque<std::string> made_names;  // that the debug data has in parts only

  // Keeps the memory.
  void Clear() {
    files.clear();
    functions.clear();
    lines.clear();
    inlines.clear();
    ranges.clear();
    made_names.clear();
  }
};

}  // namespace ksym
