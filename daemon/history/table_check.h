// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "daemon/history/tables.h"
#include "daemon/profile/accounting.h"
#include "daemon/profile/frame_kinds.h"
#include "daemon/profile/sample_kind.h"
#include "ksym/base/result.h"

namespace profd::history {

// Whether a decoded file is one that a query may use: its words are known, its
// stacks not too deep, and its parts have the samples that their counters say.
// kCorrupt, kUnsupported: not. O(the file).
ksym::Status CheckTables(const Tables& tables);

// The words of its functions alone.
ksym::Status CheckFunctions(const Tables& tables);

// The functions of all different stacks of its rows, as kMaxStackSteps bounds
// them. The tables were checked. O(rows and nodes).
uint64_t StackSteps(const Tables& tables);

// The counters of parts, whose names are looked up once for a file. The tables
// must live longer.
class PartAccountings {
 public:
  explicit PartAccountings(const Tables& tables);

  // False: there is one that is not known.
  bool knows_all() const { return knows_all_; }
  Accounting Of(const Part& part) const;
  // The fewer of those that were taken and emitted: a query takes samples that
  // it leaves out off both, and neither may become negative.
  uint64_t SamplesOf(const Part& part) const;

 private:
  const Tables& tables_;
  std::vector<size_t> numbers_;  // by string: one more than FindCounter()
  // The same numbers.
  const size_t taken_;
  const size_t emitted_;
  bool knows_all_ = true;
};

// The kind of a function's code; null: the word is not known.
const FrameKind* KindOfFunction(const Tables& tables, const Function& function);

SampleKind SampleKindOf(const Tables& tables, const Kind& kind);

}  // namespace profd::history
