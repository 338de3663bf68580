// SPDX-License-Identifier: Apache-2.0
#include "daemon/history/coverage.h"

#include <fmt/format.h>

#include <string_view>

#include "daemon/base/now_ns.h"
#include "daemon/base/utc_time.h"
#include "daemon/history/table_check.h"

namespace profd::history {
namespace {

// Parts follow each other within milliseconds; a timer that is late by more is
// a hole.
constexpr uint64_t kLongestGapNs = 2 * kNsPerSecond;

}  // namespace

CoverageAdder::Step CoverageAdder::Add(const Tables& tables, const Part& part) {
  const std::string_view run =
      tables.strings.Get(tables.settings[part.setting].run);
  Step step = Step::kFollows;
  if (coverage_.parts++ == 0) {
    step = Step::kFirst;
  } else {
    const bool is_restart = run != last_run_;
    if (is_restart) {
      ++coverage_.restarts;
      step = Step::kRestart;
    }
    if (part.start_unix_ns + kLongestGapNs < last_end_unix_ns_) {
      ++coverage_.set_back;
      if (!is_restart) step = Step::kSetBack;
    } else if (part.start_unix_ns > last_end_unix_ns_ + kLongestGapNs) {
      ++coverage_.holes;
      coverage_.hole_ns += part.start_unix_ns - last_end_unix_ns_;
      if (!is_restart) step = Step::kHole;
      if (coverage_.first_holes.size() < RangeCoverage::kMaxHolesListed) {
        coverage_.first_holes.push_back({.from_unix_ns = last_end_unix_ns_,
                                         .until_unix_ns = part.start_unix_ns,
                                         .is_restart = is_restart});
      }
    }
  }
  last_run_ = run;
  last_end_unix_ns_ = part.start_unix_ns + part.duration_ns;
  coverage_.known_ns += part.duration_ns;
  AddKinds(tables, tables.settings[part.setting]);
  return step;
}

void CoverageAdder::AddKinds(const Tables& tables, const Setting& setting) {
  for (uint32_t i = 0; i < setting.kinds; ++i) {
    const Kind& kind = tables.kinds[setting.first_kind + i];
    if (coverage_.kinds.size() == kMaxSampleKinds) return;
    if (!FindKind(coverage_.kinds, tables.strings.Get(kind.name))) {
      coverage_.kinds.push_back(SampleKindOf(tables, kind));
    }
  }
}

std::vector<std::string> TextsOf(const RangeCoverage& coverage) {
  std::vector<std::string> texts;
  texts.reserve(coverage.first_holes.size() + 2);
  for (const RangeCoverage::Hole& hole : coverage.first_holes) {
    texts.push_back(fmt::format(
        "nothing is known of {} to {} UTC{}", UtcTimeText(hole.from_unix_ns),
        UtcTimeText(hole.until_unix_ns),
        hole.is_restart ? ": the service was not running" : ""));
  }
  if (coverage.holes > coverage.first_holes.size()) {
    texts.push_back(
        fmt::format("there are {} such holes, {} seconds all together",
                    coverage.holes, coverage.hole_ns / kNsPerSecond));
  }
  if (coverage.set_back > 0) {
    texts.push_back(fmt::format(
        "the clock was set back {} times: times overlap", coverage.set_back));
  }
  return texts;
}

}  // namespace profd::history
