// SPDX-License-Identifier: Apache-2.0
#include "daemon/history/timeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <optional>
#include <string_view>
#include <tuple>

#include "daemon/base/bounded_sum.h"
#include "daemon/base/now_ns.h"
#include "daemon/history/pod_names.h"
#include "daemon/history/table_check.h"
#include "daemon/output/cgroup_path.h"

namespace profd::history {
namespace {

using ksym::ErrorCode;
using ksym::Fail;
using ksym::Result;
using ksym::Status;

constexpr uint32_t kRestName = std::numeric_limits<uint32_t>::max();
// Names that stay apart when there are too many values.
constexpr size_t kNamesKept = 128;
// With all their steps and lanes; so there is room for others after it.
constexpr size_t kCellsKept = TimelineAdder::kMaxCells / 4 * 3;
static_assert(kCellsKept / (KindLanes::kMaxLanes * TimelineAdder::kMaxSteps) >=
              TimelineAdder::kMaxLaneRows);

std::string NameIn(const Tables& tables, const PodNames& pods,
                   const Series& series, TimelineBy by) {
  switch (by) {
    case TimelineBy::kAll:
      return {};
    case TimelineBy::kUnit:
      return std::string(
          ParseCgroupPath(tables.strings.Get(series.cgroup)).unit);
    case TimelineBy::kContainer:
      return pods.ContainerOf(series.cgroup);
    case TimelineBy::kPod:
      return pods.PodOf(series.cgroup);
    case TimelineBy::kCommand:
      return std::string(tables.strings.Get(series.comm));
    case TimelineBy::kProcess:
      return std::to_string(series.pid);
  }
  return {};
}

}  // namespace

Result<TimelineAdder> TimelineAdder::Begin(TimelineRequest request) {
  const uint64_t from = request.selection.from_unix_ns;
  const uint64_t until = request.selection.until_unix_ns;
  if (from >= until) {
    return Fail(ErrorCode::kInvalid, "the time ends before it begins");
  }
  if (request.step_ns == 0 ||
      (until - from - 1) / request.step_ns >= kMaxSteps) {
    return Fail(ErrorCode::kInvalid,
                fmt::format("a time line has 1 to {} steps", kMaxSteps));
  }
  if (request.step_ns < kNsPerSecond &&
      (!request.selection.by_slice || request.step_ns < kSliceNs)) {
    return Fail(ErrorCode::kInvalid,
                "steps are of seconds, or of 20 ms or more of a time that is "
                "given to the millisecond");
  }
  const size_t most = request.has_lanes ? kMaxLaneRows : kMaxTimelineRows;
  if (request.rows == 0 || request.rows > most) {
    return Fail(ErrorCode::kInvalid,
                fmt::format("a time line{} has 1 to {} rows",
                            request.has_lanes ? " with lanes" : "", most));
  }
  return TimelineAdder(std::move(request));
}

TimelineAdder::TimelineAdder(TimelineRequest request)
    : request_(std::move(request)),
      selection_(request_.selection),
      kinds_(selection_.kind, request_.has_lanes ? KindLanes::kMaxLanes : 1) {
  // All kinds are read then: the one that was asked for is the first lane's.
  if (request_.has_lanes) selection_.kind.clear();
  // What began before it is of no step.
  selection_.begun_only = true;
  const Selection& selection = request_.selection;
  line_.from_unix_ns = selection.from_unix_ns;
  line_.step_ns = request_.step_ns;
  line_.steps.resize((selection.until_unix_ns - selection.from_unix_ns - 1) /
                         request_.step_ns +
                     1);
  const size_t slots =
      line_.steps.size() * (request_.has_lanes ? KindLanes::kMaxLanes : 1);
  rest_.resize(slots);
  known_ns_.resize(slots);
}

uint32_t TimelineAdder::StepOf(const Part& part) const {
  return static_cast<uint32_t>((part.start_unix_ns - line_.from_unix_ns) /
                               line_.step_ns);
}

uint32_t TimelineAdder::StepOf(const Part& part, const Row& row) const {
  return static_cast<uint32_t>((BeginOf(part, row) - line_.from_unix_ns) /
                               line_.step_ns);
}

template <typename Call>
void TimelineAdder::ForEachStep(const Part& part, const Call& call) const {
  if (!selection_.by_slice) {
    const auto [here, next] = Split(part, part.duration_ns);
    call(StepOf(part), here);
    if (next > 0) call(StepOf(part) + 1, next);
    return;
  }
  uint64_t at = part.start_unix_ns;
  uint64_t left = part.duration_ns;
  const size_t first = StepOf(part);
  const size_t end =
      std::min(line_.steps.size(), first + TimelineAdder::kMaxStepsOfPart);
  for (size_t step = first; step < end && left > 0; ++step) {
    const uint64_t next = line_.from_unix_ns + (step + 1) * line_.step_ns;
    const uint64_t here = std::min(left, next - at);
    call(static_cast<uint32_t>(step), here);
    at += here;
    left -= here;
  }
}

std::pair<uint64_t, uint64_t> TimelineAdder::Split(const Part& part,
                                                   uint64_t value) const {
  const uint64_t into =
      (part.start_unix_ns - line_.from_unix_ns) % line_.step_ns;
  const uint64_t left = line_.step_ns - into;
  // Parts are of a second or so; the last one's rest is of no step.
  if (part.duration_ns <= left || StepOf(part) + 1 == line_.steps.size()) {
    return {value, 0};
  }
  const double share =
      static_cast<double>(left) / static_cast<double>(part.duration_ns);
  const auto here = static_cast<uint64_t>(static_cast<double>(value) * share);
  // The second is what the first leaves, so that rounding loses nothing.
  return {std::min(here, value), value - std::min(here, value)};
}

TimelineAdder::Slot TimelineAdder::SlotOf(size_t lane, uint32_t step) const {
  return static_cast<Slot>(lane * line_.steps.size()) + step;
}

void TimelineAdder::AddCells(Cell place, const Part& part,
                             std::vector<Cell>& cells) {
  const auto [here, next] = Split(part, place.value);
  AddValue({.name = place.name, .slot = place.slot, .value = here}, cells);
  AddValue({.name = place.name, .slot = place.slot + 1, .value = next}, cells);
}

void TimelineAdder::AddValue(const Cell& cell, std::vector<Cell>& cells) {
  if (cell.value == 0) return;
  if (cell.name == kRestName) {
    AddUpTo64Bits(rest_[cell.slot], cell.value);
  } else {
    cells.push_back(cell);
  }
}

uint32_t TimelineAdder::NumberOf(const std::string& name,
                                 std::string_view comm) {
  const auto found = numbers_.find(name);
  if (found != numbers_.end()) {
    return is_rest_[found->second] ? kRestName : found->second;
  }
  if (is_closed_ || names_.size() == kMaxNames) {
    line_.is_coarse = true;
    return kRestName;
  }
  const auto number = static_cast<uint32_t>(names_.size());
  numbers_.emplace(name, number);
  names_.push_back(name);
  comms_.emplace_back(request_.by == TimelineBy::kProcess ? comm
                                                          : std::string_view());
  is_rest_.push_back(false);
  return number;
}

Status TimelineAdder::Add(const Tables& tables) {
  if (auto right = CheckTables(tables); !right) return right;
  const FileFilter filter(tables, selection_);
  const PodNames pods(tables);
  kinds_.Enter(tables, filter);
  // By series; found when they are needed.
  std::vector<uint32_t> names(tables.series.size());
  std::vector<bool> is_named(tables.series.size());
  std::vector<Cell> cells;
  for (const Row& row : tables.rows) {
    const Series& series = tables.series[row.series];
    if (!filter.HasPart(row.part) || !filter.HasRow(row)) continue;
    const std::optional<size_t> lane = kinds_.LaneOf(series);
    if (!lane) continue;
    if (!is_named[row.series]) {
      is_named[row.series] = true;
      names[row.series] = NumberOf(NameIn(tables, pods, series, request_.by),
                                   tables.strings.Get(series.comm));
    }
    const Part& part = tables.parts[row.part];
    Cell cell = {.name = names[row.series],
                 .slot = SlotOf(*lane, StepOf(part)),
                 .value = kinds_.lanes()[*lane].ValueOfRow(series, row)};
    if (selection_.by_slice) {
      cell.slot = SlotOf(*lane, StepOf(part, row));
      AddValue(cell, cells);
    } else {
      AddCells(cell, part, cells);
    }
  }
  Merge(std::move(cells));
  AddParts(tables, filter);
  return {};
}

void TimelineAdder::AddParts(const Tables& tables, const FileFilter& filter) {
  const PartAccountings accountings(tables);
  for (uint32_t i = 0; i < tables.parts.size(); ++i) {
    if (!filter.HasPart(i)) continue;
    const Part part = filter.PartIn(i);
    const Accounting accounting = accountings.Of(part);
    Timeline::Step& step = line_.steps[StepOf(part)];
    ForEachStep(part, [&](uint32_t place, uint64_t ns) {
      line_.steps[place].known_ns += ns;
    });
    AddKnown(tables, part);
    step.samples += accounting.emitted;
    step.lost += accounting.lost();
    const CoverageAdder::Step place = coverage_.Add(tables, part);
    step.has_restart |= place == CoverageAdder::Step::kRestart;
    step.has_set_back |= place == CoverageAdder::Step::kSetBack;
    const Setting& setting = tables.settings[part.setting];
    if (setting.kinds == 0) continue;
    const uint64_t rate = tables.kinds[setting.first_kind].frequency_hz;
    step.has_new_rate |= last_rate_ != 0 && rate != last_rate_;
    last_rate_ = rate;
  }
}

// A kind that was not sampled in a part is not known there.
void TimelineAdder::AddKnown(const Tables& tables, const Part& part) {
  const Setting& setting = tables.settings[part.setting];
  for (size_t lane = 0; lane < kinds_.lanes().size(); ++lane) {
    if (!kinds_.IsSampled(tables, setting, lane)) continue;
    ForEachStep(part, [&](uint32_t step, uint64_t ns) {
      known_ns_[SlotOf(lane, step)] += ns;
    });
  }
}

// Adds equal names and steps of one file up, so that few values remain.
void TimelineAdder::Merge(std::vector<Cell> cells) {
  const auto place = [](const Cell& cell) {
    return std::pair(cell.name, cell.slot);
  };
  std::ranges::sort(cells, {}, place);
  for (const Cell& cell : cells) {
    if (!cells_.empty() && place(cells_.back()) == place(cell)) {
      AddUpTo64Bits(cells_.back().value, cell.value);
      continue;
    }
    if (cells_.size() >= kMaxCells) Shrink();
    if (is_rest_[cell.name]) {
      AddUpTo64Bits(rest_[cell.slot], cell.value);
    } else {
      cells_.push_back(cell);
    }
  }
}

std::vector<TimelineAdder::Weight> TimelineAdder::Weights() const {
  std::vector<Weight> weights(names_.size());
  for (const Cell& cell : cells_) {
    Weight& weight = weights[cell.name];
    AddUpTo64Bits(
        cell.slot < line_.steps.size() ? weight.first_lane : weight.others,
        cell.value);
  }
  return weights;
}

// Leaves the values of the largest names, each step once.
void TimelineAdder::Shrink() {
  line_.is_coarse = true;
  is_closed_ = true;
  const std::vector<Weight> weights = Weights();
  std::vector<uint32_t> order(names_.size());
  std::iota(order.begin(), order.end(), 0u);
  std::ranges::sort(order, [&](uint32_t a, uint32_t b) {
    return std::pair(weights[b], a) < std::pair(weights[a], b);
  });
  const size_t most = std::min(kNamesKept, kCellsKept / rest_.size());
  for (size_t i = most; i < order.size(); ++i) is_rest_[order[i]] = true;
  std::vector<Cell> kept;
  std::ranges::sort(cells_, {}, [](const Cell& cell) {
    return std::pair(cell.name, cell.slot);
  });
  for (const Cell& cell : cells_) {
    if (is_rest_[cell.name]) {
      AddUpTo64Bits(rest_[cell.slot], cell.value);
    } else if (!kept.empty() && kept.back().name == cell.name &&
               kept.back().slot == cell.slot) {
      AddUpTo64Bits(kept.back().value, cell.value);
    } else {
      kept.push_back(cell);
    }
  }
  cells_ = std::move(kept);
}

// The largest names, and the rest.
void TimelineAdder::AddRows() {
  const std::vector<Weight> weights = Weights();
  std::vector<uint32_t> order;
  for (uint32_t i = 0; i < weights.size(); ++i) {
    if (!is_rest_[i]) order.push_back(i);
  }
  std::ranges::sort(order, [&](uint32_t a, uint32_t b) {
    return std::tie(weights[b], names_[a]) < std::tie(weights[a], names_[b]);
  });
  constexpr size_t kNone = std::numeric_limits<size_t>::max();
  std::vector<size_t> row_of_name(names_.size(), kNone);
  for (const uint32_t name : order) {
    if (line_.rows.size() == request_.rows) break;
    row_of_name[name] = line_.rows.size();
    line_.rows.push_back(
        {.name = names_[name], .comm = comms_[name], .values = {}});
    line_.rows.back().values.resize(rest_.size());
  }
  for (const Cell& cell : cells_) {
    const size_t row = row_of_name[cell.name];
    AddUpTo64Bits(
        row == kNone ? rest_[cell.slot] : line_.rows[row].values[cell.slot],
        cell.value);
  }
  if (std::ranges::any_of(rest_, [](uint64_t value) { return value != 0; })) {
    line_.rows.push_back({.is_rest = true, .values = std::move(rest_)});
  }
}

void TimelineAdder::SplitLanes(Timeline::Row& row) const {
  const size_t steps = line_.steps.size();
  for (size_t lane = 1; lane < kinds_.lanes().size(); ++lane) {
    const auto begin = row.values.begin() + SlotOf(lane, 0);
    row.others.emplace_back(begin, begin + steps);
  }
  row.values.resize(steps);
  row.values.shrink_to_fit();
}

Timeline TimelineAdder::Finish() && {
  line_.names = names_.size();
  AddRows();
  for (Timeline::Row& row : line_.rows) {
    SplitLanes(row);
    for (const uint64_t value : row.values) AddUpTo64Bits(row.sum, value);
  }
  for (size_t lane = 0; lane < kinds_.lanes().size(); ++lane) {
    const OneKind& kind = kinds_.lanes()[lane];
    const auto begin = known_ns_.begin() + SlotOf(lane, 0);
    line_.lanes.push_back({.kind = kind.name(),
                           .unit = kind.unit(),
                           .known_ns = {begin, begin + line_.steps.size()}});
  }
  line_.kind = kinds_.lanes().front().name();
  line_.unit = kinds_.lanes().front().unit();
  line_.coverage = coverage_.coverage();
  return std::move(line_);
}

}  // namespace profd::history
