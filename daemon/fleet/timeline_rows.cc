// SPDX-License-Identifier: Apache-2.0
#include "daemon/fleet/timeline_rows.h"

#include <algorithm>
#include <utility>

#include "daemon/base/bounded_sum.h"
#include "daemon/base/now_ns.h"

namespace profd::fleet {
TimelineRows::TimelineRows(const Coverage& coverage, const Question& question,
                           uint32_t step) {
  line_.from_unix_ns = question.from * kNsPerSecond;
  line_.step_ns = step * kNsPerSecond;
  for (const Coverage::Step& known : coverage.steps) {
    line_.steps.push_back({.known_ns = known.known_ns,
                           .samples = known.taken - known.lost,
                           .lost = known.lost});
  }
}

void TimelineRows::SetKinds(std::span<const SampleKind> kinds,
                            const SampleKind& first, bool has_lanes) {
  line_.kind = first.name;
  line_.unit = first.unit;
  const auto add = [&](const SampleKind& kind) {
    line_.lanes.push_back({.kind = kind.name, .unit = kind.unit});
    for (const auto& step : line_.steps) {
      line_.lanes.back().known_ns.push_back(step.known_ns);
    }
  };
  add(first);
  if (!has_lanes) return;
  for (const SampleKind& kind : kinds) {
    if (line_.lanes.size() == history::KindLanes::kMaxLanes) return;
    if (kind.name != first.name) add(kind);
  }
}

std::optional<size_t> TimelineRows::LaneOf(std::string_view kind) const {
  const auto found =
      std::ranges::find(line_.lanes, kind, &history::Timeline::Lane::kind);
  if (found == line_.lanes.end()) return std::nullopt;
  return static_cast<size_t>(found - line_.lanes.begin());
}

ksym::Status TimelineRows::AddRows(RowNames names,
                                   std::span<const Cell> cells) {
  const size_t steps = line_.steps.size();
  line_.names = names.names;
  for (std::string& name : names.largest) {
    line_.rows.push_back({.name = std::move(name), .values = {}});
  }
  line_.rows.push_back({.is_rest = true, .values = {}});
  for (auto& row : line_.rows) {
    row.values.resize(steps);
    row.others.resize(line_.lanes.size() - 1, std::vector<uint64_t>(steps));
  }
  bool has_rest = false;
  for (const Cell& cell : cells) {
    if (cell.row >= line_.rows.size() || cell.step >= steps) {
      return ksym::Fail(ksym::ErrorCode::kCorrupt,
                        "the database's answer is damaged");
    }
    const auto lane = LaneOf(cell.kind);
    if (!lane) continue;
    // Row 0 of the database's is the rest, which comes last here.
    auto& row = cell.row == 0 ? line_.rows.back() : line_.rows[cell.row - 1];
    has_rest |= cell.row == 0 && cell.value != 0;
    auto& values = *lane == 0 ? row.values : row.others[*lane - 1];
    AddUpTo64Bits(values[cell.step], cell.value);
    if (*lane == 0) AddUpTo64Bits(row.sum, cell.value);
  }
  if (!has_rest) line_.rows.pop_back();
  return {};
}

}  // namespace profd::fleet
