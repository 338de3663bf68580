// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "daemon/history/coverage.h"
#include "daemon/history/one_kind.h"
#include "daemon/history/selection.h"
#include "daemon/history/tables.h"
#include "ksym/base/result.h"

namespace profd::history {

// A row of a time line has the samples of all, or of one of these.
enum class TimelineBy : uint8_t { kAll, kUnit, kContainer, kCommand };

struct TimelineRequest {
  // Its times bound the line: both are given.
  Selection selection;
  uint64_t step_ns = 0;
  TimelineBy by = TimelineBy::kAll;
  size_t rows = 20;  // the largest; the others are one row behind them
};

// The use over a time in steps of equal length: a heat map, or with one row a
// curve. A part that goes on in the next step has a share in both.
struct Timeline {
  // The sampling in a step, whoever's samples are wanted.
  struct Step {
    uint64_t known_ns = 0;      // of sampling; 0: a hole
    uint64_t samples = 0;       // of all kinds
    uint64_t lost = 0;          // samples
    bool has_restart = false;   // of the service
    bool has_set_back = false;  // the clock went back
    bool has_new_rate = false;
  };
  struct Row {
    std::string name = {};  // empty: of samples that have no such name
    bool is_rest = false;
    uint64_t sum = 0;
    std::vector<uint64_t> values;  // by step
  };

  uint64_t from_unix_ns = 0;
  uint64_t step_ns = 0;
  std::vector<Step> steps;
  std::vector<Row> rows;  // the largest first, the rest behind them
  size_t names = 0;       // of all rows
  // There were too many names to keep all apart to the end: a row's values may
  // be in the rest for as long as it was small.
  bool is_coarse = false;
  std::string kind;  // of the samples
  std::string unit;  // of all values
  RangeCoverage coverage;
};

// Adds files up to a time line. Not thread-safe. Memory: that of the answer,
// and kMaxCells.
class TimelineAdder {
 public:
  static constexpr size_t kMaxSteps = 11'000;  // a week of minutes
  static constexpr size_t kMaxTimelineRows = 100;
  // Values that are remembered, of which each has a step and a name.
  static constexpr size_t kMaxCells = size_t{1} << 21;
  static constexpr size_t kMaxNames = size_t{1} << 16;

  // kInvalid: the times, the step or the rows are not within these.
  static ksym::Result<TimelineAdder> Begin(TimelineRequest request);

  // kCorrupt, kUnsupported: nothing was added. O(the file).
  ksym::Status Add(const Tables& tables);
  Timeline Finish() &&;

 private:
  struct Cell {
    uint32_t name = 0;
    uint32_t step = 0;
    uint64_t value = 0;
  };

  explicit TimelineAdder(TimelineRequest request);
  uint32_t NameOf(const Tables& tables, const Series& series);
  uint32_t StepOf(const Part& part) const;
  // A part's value in its step and in the next one.
  std::pair<uint64_t, uint64_t> Split(const Part& part, uint64_t value) const;
  void AddCells(uint32_t name, const Part& part, uint64_t value,
                std::vector<Cell>& cells);
  void AddParts(const Tables& tables, const FileFilter& filter);
  void Merge(std::vector<Cell> cells);
  void Shrink();
  std::vector<uint64_t> Sums() const;

  TimelineRequest request_;
  OneKind kind_;
  CoverageAdder coverage_;
  Timeline line_;
  std::map<std::string, uint32_t, std::less<>> numbers_;  // of names
  std::vector<std::string> names_;                        // by number
  std::vector<bool> is_rest_;                             // by number
  bool is_closed_ = false;      // new names are of the rest
  std::vector<Cell> cells_;     // each name and step once, but for the last few
  std::vector<uint64_t> rest_;  // by step
  uint64_t last_rate_ = 0;
};

}  // namespace profd::history
