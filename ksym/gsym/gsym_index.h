// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <vector>

#include "ksym/base/function_batch.h"
#include "ksym/gsym/gsym_file.h"
#include "ksym/gsym/gsym_inline.h"
#include "ksym/gsym/gsym_line_table.h"

namespace ksym {

// Where to enter one function's line program, and which inlined calls contain
// which addresses: with it a lookup decodes a few rows instead of all those
// before the address, and no inlined calls but those that it answers with.
// Answers are the same. Addresses are relative to the function's start.
class GsymFunctionIndex {
 public:
  // What a function's information has; empty: absent.
  struct Source {
    std::span<const std::byte> lines;
    std::span<const std::byte> inlines;
    uint64_t start = 0;  // the function's
  };

  // False where only a lookup of its own can tell what an address has: the
  // information is malformed, rows do not rise, inlined calls overlap or are
  // not within their callers. Cost: decodes the function once.
  bool Build(const GsymFile& file, const Source& source);

  // Calls visit(row) for rows in order, from one at or before `offset` on if
  // there is one, until that returns false. False when the program is
  // malformed.
  template <typename Visit>
  bool VisitRows(ByteCursor in, uint64_t start, uint64_t offset,
                 Visit&& visit) const {
    GsymLineSteps steps;
    LineRow row;
    if (!ReadGsymLineHeader(in, start, steps, row)) return false;
    if (const RowMark* mark = MarkUpTo(offset)) {
      row = {start + mark->address, mark->file, mark->line};
      in.Seek(mark->offset);
      if (!visit(row)) return true;
    }
    return RunGsymLineRows(
        in, steps, row,
        [&](const LineRow& next, const ByteCursor&) { return visit(next); });
  }

  // Calls visit(node) for the calls that contain the address, innermost first;
  // the last is the function's own node.
  template <typename Visit>
  void VisitInlines(uint64_t start, uint64_t offset, Visit&& visit) const {
    for (uint32_t i = InnermostAt(offset); i != 0;) {
      const Node& node = nodes_[i - 1];
      visit(GsymInlineNode{.first_start = start + node.first_start,
                           .name = node.name,
                           .call_file = node.call_file,
                           .call_line = node.call_line,
                           .is_function = node.parent == 0});
      i = node.parent;
    }
  }

  size_t memory_bytes() const;

 private:
  // A row, and where the program goes on behind it.
  struct RowMark {
    uint32_t address = 0;
    uint32_t offset = 0;
    uint32_t file = 0;
    uint32_t line = 0;
  };
  struct Node {
    uint32_t first_start = 0;
    uint32_t name = 0;
    uint32_t call_file = 0;
    uint32_t call_line = 0;
    uint32_t parent = 0;  // index + 1; 0: none
  };
  // From `start` on the innermost call is this one; index + 1; 0: none.
  struct Segment {
    uint32_t start = 0;
    uint32_t node = 0;
  };
  struct Range {
    uint64_t start = 0;
    uint64_t end = 0;
    uint32_t node = 0;  // index
    uint32_t depth = 0;
  };

  bool MarkRows(ByteCursor in, uint64_t start);
  bool ReadNodes(GsymInlineReader reader, uint64_t start,
                 std::vector<Range>& ranges);
  bool CutIntoSegments(std::vector<Range>& ranges);
  void AddSegment(uint64_t start, uint32_t node);
  const RowMark* MarkUpTo(uint64_t offset) const;
  uint32_t InnermostAt(uint64_t offset) const;

  std::vector<RowMark> marks_;
  std::vector<Node> nodes_;
  std::vector<Segment> segments_;
};

// The indices of those functions of a file in which addresses were looked up
// more than once, as far as they fit into a bound; a lookup elsewhere costs
// what it costs without. Borrows the file. Not thread-safe.
class GsymIndex {
 public:
  static constexpr size_t kDefaultBytes = size_t{16} << 20;
  // Information that is shorter is decoded in the time that a search takes.
  static constexpr size_t kMinFunctionBytes = 512;

  explicit GsymIndex(const GsymFile& file, size_t max_bytes = kDefaultBytes,
                     size_t min_function_bytes = kMinFunctionBytes)
      : file_(file),
        max_bytes_(max_bytes),
        min_function_bytes_(min_function_bytes),
        places_(file.function_count()) {}

  // For a lookup in that function; null: there is no index for it. The pointer
  // is valid as long as this.
  const GsymFunctionIndex* Visit(uint32_t function,
                                 const GsymFunctionIndex::Source& source);

  size_t memory_bytes() const {
    return bytes_ + places_.size() * sizeof(uint32_t);
  }

 private:
  static constexpr uint32_t kUnseen = 0;
  static constexpr uint32_t kSeen = 1;   // once: not worth an index yet
  static constexpr uint32_t kUnfit = 2;  // is not to have one
  static constexpr uint32_t kFirstIndexed = 3;

  const GsymFile& file_;
  size_t max_bytes_;
  size_t min_function_bytes_;
  size_t bytes_ = 0;
  std::vector<uint32_t> places_;           // by function
  std::deque<GsymFunctionIndex> indices_;  // elements never move
};

}  // namespace ksym
