// SPDX-License-Identifier: Apache-2.0
#include "daemon/history/timeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <string_view>
#include <tuple>

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

std::string_view NameIn(const Tables& tables, const Series& series,
                        TimelineBy by) {
  switch (by) {
    case TimelineBy::kAll:
      return {};
    case TimelineBy::kUnit:
      return ParseCgroupPath(tables.strings.Get(series.cgroup)).unit;
    case TimelineBy::kContainer:
      return ParseCgroupPath(tables.strings.Get(series.cgroup)).container_id;
    case TimelineBy::kCommand:
      return tables.strings.Get(series.comm);
  }
  return {};
}

// Sums are of 64 bits: at a thousand CPUs that is half a year of nanoseconds.
void AddValue(uint64_t& sum, uint64_t value) {
  constexpr uint64_t kLargest = std::numeric_limits<uint64_t>::max();
  sum = value > kLargest - sum ? kLargest : sum + value;
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
  if (request.rows == 0 || request.rows > kMaxTimelineRows) {
    return Fail(ErrorCode::kInvalid,
                fmt::format("a time line has 1 to {} rows", kMaxTimelineRows));
  }
  return TimelineAdder(std::move(request));
}

TimelineAdder::TimelineAdder(TimelineRequest request)
    : request_(std::move(request)), kind_(request_.selection.kind) {
  const Selection& selection = request_.selection;
  line_.from_unix_ns = selection.from_unix_ns;
  line_.step_ns = request_.step_ns;
  line_.steps.resize((selection.until_unix_ns - selection.from_unix_ns - 1) /
                         request_.step_ns +
                     1);
  rest_.resize(line_.steps.size());
}

uint32_t TimelineAdder::StepOf(const Part& part) const {
  return static_cast<uint32_t>((part.start_unix_ns - line_.from_unix_ns) /
                               line_.step_ns);
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
  return {std::min(here, value), value - std::min(here, value)};
}

void TimelineAdder::AddCells(uint32_t name, const Part& part, uint64_t value,
                             std::vector<Cell>& cells) {
  const uint32_t step = StepOf(part);
  const auto [here, next] = Split(part, value);
  const auto add = [&](uint32_t at, uint64_t some) {
    if (some == 0) return;
    if (name == kRestName) {
      AddValue(rest_[at], some);
    } else {
      cells.push_back({.name = name, .step = at, .value = some});
    }
  };
  add(step, here);
  add(step + 1, next);
}

uint32_t TimelineAdder::NameOf(const Tables& tables, const Series& series) {
  const std::string_view name = NameIn(tables, series, request_.by);
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
  names_.emplace_back(name);
  is_rest_.push_back(false);
  return number;
}

Status TimelineAdder::Add(const Tables& tables) {
  if (auto right = CheckTables(tables); !right) return right;
  const FileFilter filter(tables, request_.selection);
  kind_.Enter(tables, filter);
  // By series; found when they are needed.
  std::vector<uint32_t> names(tables.series.size());
  std::vector<bool> is_named(tables.series.size());
  std::vector<Cell> cells;
  for (const Row& row : tables.rows) {
    const Series& series = tables.series[row.series];
    if (!filter.HasPart(row.part) || !filter.HasRow(row) ||
        !kind_.Has(series)) {
      continue;
    }
    if (!is_named[row.series]) {
      is_named[row.series] = true;
      names[row.series] = NameOf(tables, series);
    }
    AddCells(names[row.series], tables.parts[row.part],
             kind_.ValueOfRow(series, row), cells);
  }
  Merge(std::move(cells));
  AddParts(tables, filter);
  return {};
}

void TimelineAdder::AddParts(const Tables& tables, const FileFilter& filter) {
  for (uint32_t i = 0; i < tables.parts.size(); ++i) {
    if (!filter.HasPart(i)) continue;
    const Part& part = tables.parts[i];
    const Accounting accounting = CountersOfPart(tables, part);
    Timeline::Step& step = line_.steps[StepOf(part)];
    const auto [here, next] = Split(part, part.duration_ns);
    step.known_ns += here;
    if (next > 0) line_.steps[StepOf(part) + 1].known_ns += next;
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

// Adds equal names and steps of one file up, so that few values remain.
void TimelineAdder::Merge(std::vector<Cell> cells) {
  const auto place = [](const Cell& cell) {
    return std::pair(cell.name, cell.step);
  };
  std::ranges::sort(cells, {}, place);
  for (const Cell& cell : cells) {
    if (!cells_.empty() && place(cells_.back()) == place(cell)) {
      AddValue(cells_.back().value, cell.value);
      continue;
    }
    if (cells_.size() == kMaxCells) Shrink();
    if (is_rest_[cell.name]) {
      AddValue(rest_[cell.step], cell.value);
    } else {
      cells_.push_back(cell);
    }
  }
}

std::vector<uint64_t> TimelineAdder::Sums() const {
  std::vector<uint64_t> sums(names_.size());
  for (const Cell& cell : cells_) AddValue(sums[cell.name], cell.value);
  return sums;
}

// Leaves the values of the largest names, each step once.
void TimelineAdder::Shrink() {
  line_.is_coarse = true;
  is_closed_ = true;
  const std::vector<uint64_t> sums = Sums();
  std::vector<uint32_t> order(names_.size());
  std::iota(order.begin(), order.end(), 0u);
  std::ranges::sort(order, [&](uint32_t a, uint32_t b) {
    return std::pair(sums[b], a) < std::pair(sums[a], b);
  });
  for (size_t i = kNamesKept; i < order.size(); ++i) is_rest_[order[i]] = true;
  std::vector<Cell> kept;
  std::ranges::sort(cells_, {}, [](const Cell& cell) {
    return std::pair(cell.name, cell.step);
  });
  for (const Cell& cell : cells_) {
    if (is_rest_[cell.name]) {
      AddValue(rest_[cell.step], cell.value);
    } else if (!kept.empty() && kept.back().name == cell.name &&
               kept.back().step == cell.step) {
      AddValue(kept.back().value, cell.value);
    } else {
      kept.push_back(cell);
    }
  }
  cells_ = std::move(kept);
}

Timeline TimelineAdder::Finish() && {
  const std::vector<uint64_t> sums = Sums();
  std::vector<uint32_t> order;
  for (uint32_t i = 0; i < sums.size(); ++i) {
    if (!is_rest_[i]) order.push_back(i);
  }
  std::ranges::sort(order, [&](uint32_t a, uint32_t b) {
    return std::tie(sums[b], names_[a]) < std::tie(sums[a], names_[b]);
  });
  line_.names = names_.size();
  constexpr size_t kNone = std::numeric_limits<size_t>::max();
  std::vector<size_t> row_of_name(names_.size(), kNone);
  for (const uint32_t name : order) {
    if (line_.rows.size() == request_.rows) break;
    row_of_name[name] = line_.rows.size();
    line_.rows.push_back({.name = names_[name], .values = {}});
    line_.rows.back().values.resize(line_.steps.size());
  }
  for (const Cell& cell : cells_) {
    const size_t row = row_of_name[cell.name];
    AddValue(
        row == kNone ? rest_[cell.step] : line_.rows[row].values[cell.step],
        cell.value);
  }
  if (std::ranges::any_of(rest_, [](uint64_t value) { return value != 0; })) {
    line_.rows.push_back({.is_rest = true, .values = std::move(rest_)});
  }
  for (Timeline::Row& row : line_.rows) {
    for (const uint64_t value : row.values) AddValue(row.sum, value);
  }
  line_.kind = kind_.name();
  line_.unit = kind_.unit();
  line_.coverage = coverage_.coverage();
  return std::move(line_);
}

}  // namespace profd::history
