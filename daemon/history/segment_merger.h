// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "daemon/history/layout.h"
#include "daemon/history/table_builder.h"
#include "daemon/history/tables.h"

namespace profd::history {

// Tables of merged files, with what finds their elements.
inline constexpr size_t kMaxMergeBytes = size_t{64} << 20;

// Whether one file takes both, whatever they have in common: by its bounds, and
// by kMaxMergeBytes. What was merged has an outline as well.
bool FitTogether(const SegmentOutline& there, const SegmentOutline& more);

// Puts files together: parts and rows of all of them, and each string,
// function, stack, series and setting once. Not thread-safe.
class SegmentMerger {
 public:
  // Adds a file behind those before. CheckTables() has found it right, and it
  // fits what is there. False, and nothing was added: the sums of its counts,
  // or its deep stacks, are too much for one file. O(the file).
  bool Add(const Tables& file);
  // Outlines all that was added, without sequence numbers.
  SegmentOutline Outline() const;
  // All of it in the order in which a file is smallest.
  Tables Finish() &&;

 private:
  class File;

  TableBuilder builder_;
  uint64_t stack_steps_ = 0;  // see kMaxStackSteps
};

}  // namespace profd::history
