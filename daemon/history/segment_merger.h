// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "daemon/history/layout.h"
#include "daemon/history/table_builder.h"
#include "daemon/history/tables.h"

namespace profd::history {

// Tables of merged files, with what finds their elements. It holds for the sum
// of all files, and most of what they have is in several of them.
inline constexpr size_t kMaxMergeBytes = size_t{64} << 20;

// Tells by the beginnings of files how many of them one file may take.
class MergeRoom {
 public:
  // False, and it does not count: it may be too much beside those before.
  bool Take(const SegmentOutline& outline);

 private:
  Sizes sizes_ = {.strings = 0, .nodes = 0};
  size_t text_bytes_ = 0;
};

// Puts files together: parts and rows of all of them, and each string,
// function, stack, series and setting once. Not thread-safe.
class SegmentMerger {
 public:
  // Adds a file behind those before. CheckTables() has found it right, and
  // MergeRoom took it. False, and nothing was added: the sums of its counts, or
  // its deep stacks, are too much for one file. O(the file).
  bool Add(const Tables& file);
  // All of it in the order in which a file is smallest.
  Tables Finish() &&;

 private:
  class File;

  TableBuilder builder_;
  uint64_t stack_steps_ = 0;  // see kMaxStackSteps
};

}  // namespace profd::history
