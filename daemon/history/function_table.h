// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "daemon/history/coverage.h"
#include "daemon/history/one_kind.h"
#include "daemon/history/selection.h"
#include "daemon/history/tables.h"
#include "daemon/profile/frame_kinds.h"
#include "daemon/profile/id_index.h"
#include "daemon/profile/profile.h"
#include "ksym/base/result.h"

namespace profd::history {

// The use of each function in a time, of whole stacks: no small caller is
// missing.
struct FunctionTable {
  struct Line {
    StringId name = 0;
    StringId object = 0;  // Frame::object
    const FrameKind* kind = nullptr;
    uint64_t self = 0;   // it was the innermost function
    uint64_t total = 0;  // it was in the stack, once or more often

    friend bool operator==(const Line&, const Line&) = default;
  };

  StringTable strings;
  std::vector<Line> lines;  // the most self first, then total, then name
  uint64_t sum = 0;         // of all samples
  std::string kind;         // of the samples
  std::string unit;         // of all numbers
  RangeCoverage coverage;
};

// Adds files up to a table. The user's and the kernel's side of a stack are
// counted apart: they have no function in common but where the stack of a waker
// is behind the kernel's. Not thread-safe.
class FunctionAdder {
 public:
  // `max_bytes` bounds the table.
  FunctionAdder(Selection selection, size_t max_bytes)
      : selection_(std::move(selection)),
        max_bytes_(max_bytes),
        kind_(selection_.kind) {}

  // kCorrupt, kUnsupported: nothing was added. kLimit: there are too many
  // functions, and nothing may be added any more. O(the file).
  ksym::Status Add(const Tables& tables);
  FunctionTable Finish() &&;

 private:
  class File;

  uint32_t LineOf(const Tables& tables, const Function& function);
  uint32_t LineOf(FunctionTable::Line line);

  const Selection selection_;
  const size_t max_bytes_;
  OneKind kind_;
  CoverageAdder coverage_;
  FunctionTable table_;
  IdIndex line_ids_;
};

}  // namespace profd::history
