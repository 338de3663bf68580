// SPDX-License-Identifier: Apache-2.0
#include "daemon/history/range_profile.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "daemon/history/limits.h"
#include "daemon/history/words.h"
#include "daemon/output/cgroup_path.h"

namespace profd::history {
namespace {

using ksym::ErrorCode;
using ksym::Fail;
using ksym::Result;
using ksym::Status;

// Parts follow each other within milliseconds; a timer that is late by more is
// a hole.
constexpr uint64_t kLongestGapNs = 2'000'000'000;
constexpr size_t kMaxWarnings = 20;

bool IsOfUnit(std::string_view cgroup, std::string_view unit) {
  const std::string_view of_path = ParseCgroupPath(cgroup).unit;
  return of_path == unit || (of_path.starts_with(unit) &&
                             of_path.substr(unit.size()) == ".service");
}

bool IsOfContainer(std::string_view cgroup, std::string_view container) {
  return ParseCgroupPath(cgroup).container_id.starts_with(container);
}

SampleKind KindOf(const Tables& tables, const Kind& kind) {
  return {.name = std::string(tables.strings.Get(kind.name)),
          .unit = std::string(tables.strings.Get(kind.unit)),
          .event = std::string(tables.strings.Get(kind.event)),
          .frequency_hz = kind.frequency_hz,
          .count_period = kind.count_period,
          .has_values = kind.has_values != 0};
}

void AddWarnings(std::string_view lines, std::vector<std::string>& warnings) {
  while (!lines.empty() && warnings.size() < kMaxWarnings) {
    const std::string_view line = lines.substr(0, lines.find('\n'));
    if (std::ranges::find(warnings, line) == warnings.end()) {
      warnings.emplace_back(line);
    }
    lines.remove_prefix(std::min(lines.size(), line.size() + 1));
  }
}

// What a part's samples were that are shown, and that are not.
struct PartCounts {
  bool is_wanted = false;
  uint64_t left_out = 0;
};

}  // namespace

// Gives what the wanted rows of one file need to the profile, each once.
class RangeProfile::File {
 public:
  File(const Tables& tables, RangeProfile& range)
      : tables_(tables),
        range_(range),
        parts_(tables.parts.size()),
        kinds_(tables.kinds.size()),
        strings_(tables.strings.size()),
        frames_(tables.functions.size()),
        stacks_(tables.nodes.size()) {}

  Status Add() {
    FindParts();
    FindSeries();
    FindNodes();
    // Nothing is added of a file that has anything wrong.
    if (auto right = Check(); !right) return right;
    if (auto found = FindKinds(); !found) return found;
    for (const Row& row : tables_.rows) {
      PartCounts& part = parts_[row.part];
      if (!part.is_wanted) continue;
      if (!series_wanted_[row.series] || !HasFunction(row)) {
        part.left_out += row.count;
        continue;
      }
      if (auto added = AddRow(row); !added) return added;
    }
    AddParts();
    return {};
  }

 private:
  void FindParts() {
    for (size_t i = 0; i < parts_.size(); ++i) {
      const uint64_t start = tables_.parts[i].start_unix_ns;
      parts_[i].is_wanted = start >= range_.selection_.from_unix_ns &&
                            start < range_.selection_.until_unix_ns;
    }
  }

  void FindSeries() {
    const Selection& wanted = range_.selection_;
    for (const Series& series : tables_.series) {
      const std::string_view cgroup = tables_.strings.Get(series.cgroup);
      series_wanted_.push_back(
          (!wanted.pid || series.pid == *wanted.pid) &&
          (wanted.command.empty() ||
           tables_.strings.Get(series.comm) == wanted.command) &&
          (wanted.kind.empty() ||
           tables_.strings.Get(tables_.kinds[series.kind].name) ==
               wanted.kind) &&
          (wanted.unit.empty() || IsOfUnit(cgroup, wanted.unit)) &&
          (wanted.container.empty() ||
           IsOfContainer(cgroup, wanted.container)));
    }
  }

  // Callers come before what they call, so one pass tells which stacks have a
  // wanted function.
  void FindNodes() {
    const std::string& wanted = range_.selection_.function;
    if (wanted.empty()) return;
    std::vector<bool> functions;
    for (const Function& function : tables_.functions) {
      functions.push_back(tables_.strings.Get(function.name).find(wanted) !=
                          std::string_view::npos);
    }
    node_wanted_.push_back(false);
    for (size_t i = 1; i < tables_.nodes.size(); ++i) {
      const Node& node = tables_.nodes[i];
      node_wanted_.push_back(functions[node.function] ||
                             node_wanted_[node.parent]);
    }
  }

  bool HasFunction(const Row& row) const {
    return node_wanted_.empty() || node_wanted_[row.user] ||
           node_wanted_[row.kernel];
  }

  Status FindKinds() {
    for (const Part& part : tables_.parts) {
      if (!parts_[static_cast<size_t>(&part - tables_.parts.data())]
               .is_wanted) {
        continue;
      }
      const Setting& setting = tables_.settings[part.setting];
      for (uint32_t i = 0; i < setting.kinds; ++i) {
        auto& place = kinds_[setting.first_kind + i];
        const SampleKind kind =
            KindOf(tables_, tables_.kinds[setting.first_kind + i]);
        const std::string& wanted = range_.selection_.kind;
        if (place || (!wanted.empty() && kind.name != wanted)) continue;
        const auto found = range_.PlaceOf(kind);
        if (!found) return Fail(found.error());
        place = *found;
      }
    }
    return {};
  }

  Status Check() const {
    for (const Function& function : tables_.functions) {
      if (KindOfFunction(function) == nullptr || !ReasonOf(function)) {
        return Fail(ErrorCode::kUnsupported,
                    "has a kind of frame, or a reason for a missing name, "
                    "that is not known");
      }
    }
    std::vector<uint32_t> depths = {0};
    for (size_t i = 1; i < tables_.nodes.size(); ++i) {
      depths.push_back(depths[tables_.nodes[i].parent] + 1);
      if (depths.back() > kMaxStackDepth) {
        return Fail(ErrorCode::kCorrupt, "has a stack that is too deep");
      }
    }
    return CheckParts();
  }

  Status CheckParts() const {
    std::vector<uint64_t> emitted;
    for (const Part& part : tables_.parts) {
      Accounting accounting;
      if (!ReadCounters(part, accounting)) {
        return Fail(ErrorCode::kUnsupported, "has a counter that is not known");
      }
      emitted.push_back(std::min(accounting.emitted, accounting.taken));
    }
    for (const Row& row : tables_.rows) {
      const Setting& setting =
          tables_.settings[tables_.parts[row.part].setting];
      const uint32_t kind = tables_.series[row.series].kind;
      if (kind < setting.first_kind ||
          kind - setting.first_kind >= setting.kinds) {
        return Fail(ErrorCode::kCorrupt, "has a sample of no kind of its part");
      }
      if (row.count > emitted[row.part]) {
        return Fail(ErrorCode::kCorrupt, "has more samples than were taken");
      }
      emitted[row.part] -= row.count;
    }
    return {};
  }

  // False: one has a name that is not known.
  bool ReadCounters(const Part& part, Accounting& accounting) const {
    for (uint32_t at = 0; at < part.counters; ++at) {
      const Counter& counter = tables_.counters[part.first_counter + at];
      if (!SetCounter(tables_.strings.Get(counter.name), counter.value,
                      accounting)) {
        return false;
      }
    }
    return true;
  }

  Status AddRow(const Row& row) {
    const Series& series = tables_.series[row.series];
    range_.builder_.AddSample(
        {.comm = String(series.comm),
         .pid = series.pid,
         .tid = series.tid,
         .cgroup = String(series.cgroup),
         .user_state = static_cast<StackState>(series.user_state),
         .kernel_state = static_cast<StackState>(series.kernel_state),
         .kind = *kinds_[series.kind],
         .parked = series.parked != 0,
         .user = StackOf(row.user),
         .kernel = StackOf(row.kernel),
         .count = row.count,
         .value = row.value});
    // The estimate costs nothing, but a row costs less.
    if (++rows_ % 1024 == 0 &&
        range_.builder_.memory_bytes() > range_.max_bytes_) {
      return Fail(ErrorCode::kLimit,
                  fmt::format("the profile would take more than {} MiB: ask "
                              "for a shorter time, or for one unit or command",
                              range_.max_bytes_ >> 20));
    }
    return {};
  }

  StringId String(uint32_t id) {
    auto& known = strings_[id];
    if (!known) known = range_.builder_.Intern(tables_.strings.Get(id));
    return *known;
  }

  // Walks to the root once for each different node: a stack of the profile has
  // all its frames.
  CallStackId StackOf(uint32_t node) {
    auto& known = stacks_[node];
    if (known) return *known;
    frames_of_stack_.clear();
    for (uint32_t at = node; at != 0; at = tables_.nodes[at].parent) {
      frames_of_stack_.push_back(FrameOf(tables_.nodes[at].function));
    }
    known = range_.builder_.AddStack(frames_of_stack_);
    return *known;
  }

  const FrameKind* KindOfFunction(const Function& function) const {
    return FindKindOfFunction(tables_.strings.Get(function.kind),
                              function.flags,
                              tables_.strings.Get(function.object));
  }
  std::optional<ksym::Unresolved> ReasonOf(const Function& function) const {
    return FindReason(tables_.strings.Get(function.reason));
  }

  FrameId FrameOf(uint32_t id) {
    auto& known = frames_[id];
    if (known) return *known;
    const Function& function = tables_.functions[id];
    known = range_.builder_.AddFrame({.name = String(function.name),
                                      .object = String(function.object),
                                      .build_id = String(function.build_id),
                                      .kind = KindOfFunction(function),
                                      .reason = *ReasonOf(function),
                                      .file = String(function.file),
                                      .function = String(function.function),
                                      .first_line = function.first_line});
    return *known;
  }

  void AddParts() {
    for (size_t i = 0; i < parts_.size(); ++i) {
      if (!parts_[i].is_wanted) continue;
      Accounting accounting;
      ReadCounters(tables_.parts[i], accounting);
      // As many as were checked to be there.
      accounting.emitted -= parts_[i].left_out;
      accounting.taken -= parts_[i].left_out;
      range_.builder_.Add(accounting);
      range_.NotePlace(tables_, tables_.parts[i]);
    }
  }

  const Tables& tables_;
  RangeProfile& range_;
  std::vector<PartCounts> parts_;
  std::vector<bool> series_wanted_;
  std::vector<bool> node_wanted_;  // empty: all
  std::vector<std::optional<SampleKindId>> kinds_;
  std::vector<std::optional<StringId>> strings_;
  std::vector<std::optional<FrameId>> frames_;
  std::vector<std::optional<CallStackId>> stacks_;
  std::vector<FrameId> frames_of_stack_;
  size_t rows_ = 0;
};

Status RangeProfile::Add(const Tables& tables) {
  return File(tables, *this).Add();
}

Result<SampleKindId> RangeProfile::PlaceOf(const SampleKind& kind) {
  // The first kind stands there until there is one of a part.
  if (coverage_.parts == 0 && !has_kinds_) metadata_.kinds.clear();
  has_kinds_ = true;
  std::vector<SampleKind>& kinds = metadata_.kinds;
  const auto found = std::ranges::find(kinds, kind);
  if (found == kinds.end()) {
    if (kinds.size() == kMaxSampleKinds) {
      return Fail(ErrorCode::kLimit,
                  "the time has samples of too many kinds and rates");
    }
    kinds.push_back(kind);
    return static_cast<SampleKindId>(kinds.size() - 1);
  }
  return static_cast<SampleKindId>(found - kinds.begin());
}

void RangeProfile::NotePlace(const Tables& tables, const Part& part) {
  const Setting& setting = tables.settings[part.setting];
  const auto text = [&](uint32_t id) {
    return std::string(tables.strings.Get(id));
  };
  const std::string_view run = tables.strings.Get(setting.run);
  if (coverage_.parts++ == 0) {
    metadata_.start_unix_ns = part.start_unix_ns;
  } else {
    const bool is_restart = run != last_run_;
    if (is_restart) ++coverage_.restarts;
    if (part.start_unix_ns + kLongestGapNs < last_end_unix_ns_) {
      ++coverage_.set_back;
    } else if (part.start_unix_ns > last_end_unix_ns_ + kLongestGapNs) {
      ++coverage_.holes;
      coverage_.hole_ns += part.start_unix_ns - last_end_unix_ns_;
      if (coverage_.first_holes.size() < RangeCoverage::kMaxHolesListed) {
        coverage_.first_holes.push_back({.from_unix_ns = last_end_unix_ns_,
                                         .until_unix_ns = part.start_unix_ns,
                                         .is_restart = is_restart});
      }
    }
  }
  last_run_ = run;
  last_end_unix_ns_ = part.start_unix_ns + part.duration_ns;
  metadata_.duration_ns += part.duration_ns;
  metadata_.version = text(setting.version);
  metadata_.hostname = text(setting.hostname);
  metadata_.kernel_release = text(setting.kernel_release);
  metadata_.architecture = text(setting.architecture);
  metadata_.cpus = text(setting.cpus);
  metadata_.stack_store = text(setting.stack_store);
  metadata_.unwind = text(setting.unwind);
  metadata_.max_stack_depth = setting.max_stack_depth;
  AddWarnings(tables.strings.Get(setting.warnings), metadata_.warnings);
}

namespace {

// The kinds with those that differ in nothing but how they were sampled made
// one, whose samples have values; sets each kind's place among them.
std::vector<SampleKind> UniteRates(const std::vector<SampleKind>& kinds,
                                   std::vector<SampleKindId>& places) {
  std::vector<SampleKind> united;
  for (const SampleKind& kind : kinds) {
    const auto found =
        std::ranges::find_if(united, [&](const SampleKind& other) {
          return other.name == kind.name && other.unit == kind.unit;
        });
    places.push_back(static_cast<SampleKindId>(found - united.begin()));
    if (found == united.end()) {
      united.push_back(kind);
      continue;
    }
    // The finer of the rates: nothing hangs on it but what it says.
    found->frequency_hz = std::max(found->frequency_hz, kind.frequency_hz);
    found->count_period = 0;
    found->has_values = true;
  }
  return united;
}

}  // namespace

Profile RangeProfile::Finish() && {
  const std::vector<SampleKind> kinds = metadata_.kinds;
  std::vector<SampleKindId> places;
  metadata_.kinds = UniteRates(kinds, places);
  Profile profile = std::move(builder_).Finish(std::move(metadata_));
  for (ProfileSample& sample : profile.samples) {
    const SampleKind& kind = kinds[sample.kind];
    sample.kind = places[sample.kind];
    if (profile.metadata.kinds[sample.kind].has_values) {
      sample.value = ValueOf(kind, sample.count, sample.value);
    }
  }
  return profile;
}

}  // namespace profd::history
