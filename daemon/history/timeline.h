// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "daemon/history/coverage.h"
#include "daemon/history/kind_lanes.h"
#include "daemon/history/selection.h"
#include "daemon/history/tables.h"
#include "ksym/base/result.h"

namespace profd::history {

// A row of a time line has the samples of all, or of one of these.
enum class TimelineBy : uint8_t {
  kAll,
  kUnit,
  kContainer,
  kPod,
  kCommand,
  kProcess
};

struct TimelineRequest {
  // Its times bound the line: both are given. Steps of less than a second take
  // a selection by slices.
  Selection selection;
  uint64_t step_ns = 0;
  TimelineBy by = TimelineBy::kAll;
  size_t rows = 20;  // the largest; the others are one row behind them
  // Rows have the values of the other kinds of samples as well.
  bool has_lanes = false;
};

// The use over a time in steps of equal length: a heat map, or with one row a
// curve. A part that goes on in the next step has a share in both; by slices
// each sample is of the step in which its slice begins.
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
    // Empty: of samples that have no such name. Pods and containers are called
    // as PodNames says. A process's is its number, which after it ended may be
    // that of another one.
    std::string name = {};
    // The name of the first thread of a process that was met.
    std::string comm = {};
    bool is_rest = false;
    uint64_t sum = 0;              // of the first lane
    std::vector<uint64_t> values;  // by step, of the first lane
    // The same of the other lanes, in their order.
    std::vector<std::vector<uint64_t>> others = {};
  };
  // A kind of samples.
  struct Lane {
    std::string kind;
    std::string unit;
    std::vector<uint64_t> known_ns = {};  // by step: of sampling that kind
  };

  uint64_t from_unix_ns = 0;
  uint64_t step_ns = 0;
  std::vector<Step> steps;
  // The largest by the first lane first, then by the others; the rest behind
  // them.
  std::vector<Row> rows;
  std::vector<Lane> lanes;  // the first is of `kind`
  size_t names = 0;         // of all rows
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
  // With lanes; so the answer is not larger.
  static constexpr size_t kMaxLaneRows = 25;
  static_assert(kMaxLaneRows * KindLanes::kMaxLanes <= kMaxTimelineRows);
  // Values that are remembered, of which each has a step and a name.
  static constexpr size_t kMaxCells = size_t{1} << 21;
  static constexpr size_t kMaxNames = size_t{1} << 16;
  // By slices: steps that one part is known in, of twenty seconds.
  static constexpr size_t kMaxStepsOfPart = 1000;

  // kInvalid: the times, the step or the rows are not within these.
  static ksym::Result<TimelineAdder> Begin(TimelineRequest request);

  // kCorrupt, kUnsupported: nothing was added. O(the file).
  ksym::Status Add(const Tables& tables);
  Timeline Finish() &&;
  // Values that are remembered: kMaxCells at the most.
  size_t cells() const { return cells_.size(); }

 private:
  // A step of a lane: those of the first lane come before the second's.
  using Slot = uint32_t;
  struct Cell {
    uint32_t name = 0;
    Slot slot = 0;
    uint64_t value = 0;
  };

  // What rows are ordered by.
  struct Weight {
    uint64_t first_lane = 0;
    uint64_t others = 0;

    friend auto operator<=>(const Weight&, const Weight&) = default;
  };

  explicit TimelineAdder(TimelineRequest request);
  uint32_t NumberOf(const std::string& name, std::string_view comm);
  uint32_t StepOf(const Part& part) const;
  // The step of a row that is wanted by its slice.
  uint32_t StepOf(const Part& part, const Row& row) const;
  // Calls `call(step, ns)` for the steps that the part was in.
  template <typename Call>
  void ForEachStep(const Part& part, const Call& call) const;
  // A part's value in its step and in the next one.
  std::pair<uint64_t, uint64_t> Split(const Part& part, uint64_t value) const;
  Slot SlotOf(size_t lane, uint32_t step) const;
  void AddCells(Cell place, const Part& part, std::vector<Cell>& cells);
  void AddValue(const Cell& cell, std::vector<Cell>& cells);
  void AddParts(const Tables& tables, const FileFilter& filter);
  void AddKnown(const Tables& tables, const Part& part);
  void Merge(std::vector<Cell> cells);
  void Shrink();
  std::vector<Weight> Weights() const;
  void AddRows();
  // Takes the values of all lanes apart.
  void SplitLanes(Timeline::Row& row) const;

  TimelineRequest request_;
  Selection selection_;  // of all lanes
  KindLanes kinds_;
  CoverageAdder coverage_;
  Timeline line_;
  std::map<std::string, uint32_t, std::less<>> numbers_;  // of names
  std::vector<std::string> names_;                        // by number
  std::vector<std::string> comms_;  // the same; empty but for processes
  std::vector<bool> is_rest_;       // by number
  bool is_closed_ = false;          // new names are of the rest
  std::vector<Cell> cells_;     // each name and step once, but for the last few
  std::vector<uint64_t> rest_;  // by slot
  std::vector<uint64_t> known_ns_;  // by slot
  uint64_t last_rate_ = 0;
};

}  // namespace profd::history
