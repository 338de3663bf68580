// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "daemon/fleet/answers.h"
#include "daemon/fleet/question.h"
#include "ksym/base/result.h"

namespace profd::fleet {

// How much of a time is known, as any of the hosts sampled in it, and how many
// of their samples were lost.
struct Coverage {
  struct Step {
    uint64_t known_ns = 0;  // of which some host sent something
    uint64_t taken = 0;
    uint64_t lost = 0;
  };
  std::vector<Step> steps;
  uint64_t known_ns = 0;  // of all steps, as the next ones
  uint64_t taken = 0;
  uint64_t lost = 0;
  uint64_t intervals = 0;
  bool has_doubles = false;  // an interval was sent several times

  // kCorrupt: the rows are not in the order of their steps, or of no step.
  static ksym::Result<Coverage> Of(std::span<const CoverageRow> rows,
                                   const Question& question, uint32_t step);
};

}  // namespace profd::fleet
