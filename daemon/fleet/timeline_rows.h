// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "daemon/fleet/answers.h"
#include "daemon/fleet/coverage.h"
#include "daemon/fleet/question.h"
#include "daemon/history/timeline.h"
#include "ksym/base/result.h"

namespace profd::fleet {

// Puts a time line together out of the database's rows.
class TimelineRows {
 public:
  TimelineRows(const Coverage& coverage, const Question& question,
               uint32_t step);

  // The first lane is of `first`, the others, if any are wanted, of the other
  // kinds.
  void SetKinds(std::span<const SampleKind> kinds, const SampleKind& first,
                bool has_lanes);
  // kCorrupt: a cell is of no row, or of no step.
  ksym::Status AddRows(RowNames names, std::span<const Cell> cells);
  history::Timeline Finish() && { return std::move(line_); }

 private:
  std::optional<size_t> LaneOf(std::string_view kind) const;

  history::Timeline line_;
};

}  // namespace profd::fleet
