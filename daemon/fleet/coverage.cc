// SPDX-License-Identifier: Apache-2.0
#include "daemon/fleet/coverage.h"

#include <algorithm>

#include "daemon/base/now_ns.h"

namespace profd::fleet {

ksym::Result<Coverage> Coverage::Of(std::span<const CoverageRow> rows,
                                    const Question& question, uint32_t step) {
  Coverage coverage;
  coverage.steps.resize((question.until - question.from - 1) / step + 1);
  // Something is known from the beginning up to there without a gap, or was
  // known of a time before.
  uint64_t known_until = question.from;
  size_t at = 0;
  for (size_t i = 0; i < coverage.steps.size(); ++i) {
    Step& made = coverage.steps[i];
    const uint64_t begin = question.from + uint64_t{i} * step;
    const uint64_t end = std::min<uint64_t>(begin + step, question.until);
    uint64_t first = begin;
    if (at < rows.size() && rows[at].step == i) {
      const CoverageRow& row = rows[at++];
      if (known_until <= begin) {
        first = std::max<uint64_t>(begin, row.first_unix_s);
      }
      known_until = std::max(known_until, row.end_unix_s);
      made.taken = row.taken;
      made.lost = std::min(row.lost, row.taken);
      coverage.taken += made.taken;
      coverage.lost += made.lost;
      coverage.intervals += row.intervals;
      coverage.has_doubles |= row.has_doubles;
    }
    const uint64_t last = std::min(end, known_until);
    made.known_ns = last > first ? (last - first) * kNsPerSecond : 0;
    coverage.known_ns += made.known_ns;
  }
  if (at != rows.size()) {
    return ksym::Fail(ksym::ErrorCode::kCorrupt,
                      "the database's answer is damaged");
  }
  return coverage;
}

}  // namespace profd::fleet
