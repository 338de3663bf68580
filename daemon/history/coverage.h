// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "daemon/history/tables.h"
#include "daemon/profile/sample_kind.h"

namespace profd::history {

// The parts of a range, as they tell of themselves.
struct RangeCoverage {
  // Time between parts of which nothing is known.
  struct Hole {
    uint64_t from_unix_ns = 0;
    uint64_t until_unix_ns = 0;
    bool is_restart = false;  // another run of the service begins behind it
  };

  uint64_t parts = 0;
  uint64_t known_ns = 0;  // of all parts
  uint64_t restarts = 0;
  uint64_t set_back = 0;  // times that the clock went back
  uint64_t holes = 0;
  uint64_t hole_ns = 0;           // of all of them
  std::vector<Hole> first_holes;  // at most kMaxHolesListed
  // The parts have samples of these, each name once; at most kMaxSampleKinds.
  std::vector<SampleKind> kinds;

  static constexpr size_t kMaxHolesListed = 10;
};

// Adds the parts of a range up, in the order in which they were sampled.
class CoverageAdder {
 public:
  // Where a part stands to the one before it.
  enum class Step : uint8_t { kFirst, kFollows, kHole, kRestart, kSetBack };

  // Restarts without a hole are restarts; so are those behind one.
  Step Add(const Tables& tables, const Part& part);
  const RangeCoverage& coverage() const { return coverage_; }

 private:
  void AddKinds(const Tables& tables, const Setting& setting);

  RangeCoverage coverage_;
  uint64_t last_end_unix_ns_ = 0;
  std::string last_run_;
};

// Holes and overlaps in words: one line each.
std::vector<std::string> TextsOf(const RangeCoverage& coverage);

}  // namespace profd::history
