// SPDX-License-Identifier: Apache-2.0
#include "daemon/history/summary.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <string_view>
#include <utility>
#include <vector>

#include "daemon/base/bounded_sum.h"
#include "daemon/history/table_builder.h"
#include "ksym/base/byte_reader.h"

namespace profd::history {
namespace {

// Parts that are further apart, or lie over each other by more, are not one:
// the first one's start and the length of both would say too little of when the
// second one was.
constexpr uint64_t kLongestGapNs = kNsPerSecond / 5;
// A summary that has more than this share of the file's rows saves nothing.
constexpr size_t kLeastRowsOfOne = 4;

constexpr uint64_t kRoundNs = 1'000'000;

uint64_t RoundTime(uint64_t ns) {
  const uint64_t rest = ns % kRoundNs;
  if (rest < kRoundNs / 2) return ns - rest;
  return ksym::CheckedAdd(ns, kRoundNs - rest).value_or(ns);
}

uint64_t Distance(uint64_t a, uint64_t b) { return a < b ? b - a : a - b; }

class Summary {
 public:
  explicit Summary(const Tables& tables)
      : tables_(tables),
        strings_(tables.strings.size()),
        settings_(tables.settings.size()),
        series_(tables.series.size()) {}

  std::optional<Tables> Make() && {
    AddParts();
    if (!AddRows()) return std::nullopt;
    for (const CgroupName& name : tables_.cgroup_names) {
      builder_.NameCgroup({.cgroup = Text(name.cgroup),
                           .pod_namespace = Text(name.pod_namespace),
                           .pod = Text(name.pod),
                           .container = Text(name.container)});
    }
    builder_.tables().thinnings = tables_.thinnings;
    return std::move(builder_).Finish();
  }

 private:
  uint32_t Text(uint32_t id) {
    auto& known = strings_[id];
    if (!known) known = builder_.InternText(tables_.strings.Get(id));
    return *known;
  }

  uint32_t SettingOf(uint32_t number) {
    auto& known = settings_[number];
    if (known) return *known;
    Setting setting = tables_.settings[number];
    std::vector<Kind> kinds;
    kinds.reserve(setting.kinds);
    for (uint32_t i = 0; i < setting.kinds; ++i) {
      Kind kind = tables_.kinds[setting.first_kind + i];
      kind.name = Text(kind.name);
      kind.unit = Text(kind.unit);
      kind.event = Text(kind.event);
      kinds.push_back(kind);
    }
    for (uint32_t Setting::* text :
         {&Setting::version, &Setting::hostname, &Setting::kernel_release,
          &Setting::architecture, &Setting::cpus, &Setting::stack_store,
          &Setting::unwind, &Setting::warnings, &Setting::boot,
          &Setting::run}) {
      setting.*text = Text(setting.*text);
    }
    known = builder_.InternSetting(setting, kinds);
    return *known;
  }

  void AddParts() {
    std::vector<Part>& parts = builder_.tables().parts;
    for (const Part& part : tables_.parts) {
      const uint32_t setting = SettingOf(part.setting);
      if (parts.empty() || !GoesOn(parts.back(), setting, part)) {
        FinishPart();
        parts.push_back(
            {.start_unix_ns = part.start_unix_ns, .setting = setting});
      }
      parts.back().duration_ns += part.duration_ns;
      for (uint32_t i = 0; i < part.counters; ++i) {
        const Counter& counter = tables_.counters[part.first_counter + i];
        if (IsOfATimeline(tables_.strings.Get(counter.name))) {
          AddUpTo64Bits(counters_[Text(counter.name)], counter.value);
        }
      }
      part_of_.push_back(static_cast<uint16_t>(parts.size() - 1));
    }
    FinishPart();
  }

  // How stacks ended takes more room than all else, and no time line has it.
  static bool IsOfATimeline(std::string_view counter) {
    return counter == "taken" || counter == "emitted" ||
           counter.starts_with("lost ");
  }

  static bool GoesOn(const Part& before, uint32_t setting, const Part& part) {
    const uint64_t end = before.start_unix_ns + before.duration_ns;
    return before.setting == setting &&
           part.start_unix_ns / kSummaryPartNs ==
               before.start_unix_ns / kSummaryPartNs &&
           part.start_unix_ns >= before.start_unix_ns &&
           Distance(part.start_unix_ns, end) <= kLongestGapNs &&
           before.duration_ns <= kSummaryPartNs &&
           part.duration_ns <= kSummaryPartNs;
  }

  // Its counters are those that were added up.
  void FinishPart() {
    Tables& made = builder_.tables();
    if (made.parts.empty()) return;
    Part& part = made.parts.back();
    // Finer numbers are noise, of which each takes five bytes.
    part.start_unix_ns -= part.start_unix_ns % kRoundNs;
    part.duration_ns = RoundTime(part.duration_ns);
    part.first_counter = static_cast<uint32_t>(made.counters.size());
    part.counters = static_cast<uint32_t>(counters_.size());
    for (const auto& [name, value] : counters_) {
      made.counters.push_back({.name = name, .value = value});
    }
    counters_.clear();
  }

  // False: it has too many.
  bool AddRows() {
    const auto make_row = [this](const Row& row) {
      return Row{.series = SeriesOf(row),
                 .part = part_of_[row.part],
                 .count = row.count,
                 .value = row.value};
    };
    std::vector<Row>& rows = builder_.tables().rows;
    rows.reserve(tables_.rows.size());
    std::ranges::transform(tables_.rows, std::back_inserter(rows), make_row);
    UniteRows(rows);
    return rows.size() <= tables_.rows.size() / kLeastRowsOfOne;
  }

  uint32_t SeriesOf(const Row& row) {
    auto& known = series_[row.series];
    if (known) return *known;
    const Series& series = tables_.series[row.series];
    // A kind is of the settings that have it, which have the places that they
    // had.
    known = builder_.InternSeries(
        {.cgroup = Text(series.cgroup), .kind = KindOf(series.kind, row)});
    return *known;
  }

  uint32_t KindOf(uint32_t kind, const Row& row) {
    const uint32_t setting = tables_.parts[row.part].setting;
    return builder_.tables().settings[SettingOf(setting)].first_kind +
           (kind - tables_.settings[setting].first_kind);
  }

  const Tables& tables_;
  TableBuilder builder_;
  std::vector<std::optional<uint32_t>> strings_;
  std::vector<std::optional<uint32_t>> settings_;
  std::vector<std::optional<uint32_t>> series_;
  std::vector<uint16_t> part_of_;          // by part of the file
  std::map<uint32_t, uint64_t> counters_;  // of the last part, by name
};

}  // namespace

std::optional<Tables> SummaryOf(const Tables& tables) {
  return Summary(tables).Make();
}

ksym::Result<std::string> EncodeSummarized(Tables& tables,
                                           Sequences sequences) {
  auto summary = SummaryOf(tables);
  const auto flames = FlamesOf(tables);
  return EncodeSegment(tables, sequences,
                       {.summary = summary ? &*summary : nullptr,
                        .flames = flames ? &*flames : nullptr});
}

}  // namespace profd::history
