// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "daemon/history/table_check.h"
#include "daemon/history/tables.h"
#include "daemon/profile/accounting.h"

namespace profd::history {

// Where the samples of one file's parts went, when some of them are not wanted.
class PartCounts {
 public:
  explicit PartCounts(const Tables& tables)
      : tables_(tables), accountings_(tables), parts_(tables.parts.size()) {}

  // Each row of a wanted part is either of these.
  void Take(const Row& row);
  void LeaveOut(const Row& row) { parts_[row.part].left_out += row.count; }

  // What the part counted. Where samples of it were left out, what is said of
  // stacks is of the others: how their stacks are incomplete, which their
  // states tell, but not how walks ended. What was lost before it was of
  // anybody stays.
  Accounting Of(uint32_t part) const;

 private:
  struct Count {
    uint64_t left_out = 0;
    std::array<uint64_t, kDamageCauses> damaged_by_cause = {};
  };

  const Tables& tables_;
  const PartAccountings accountings_;
  std::vector<Count> parts_;
};

}  // namespace profd::history
