// SPDX-License-Identifier: Apache-2.0
#include "daemon/history/range_profile.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "daemon/history/capture_facts.h"
#include "daemon/history/part_counts.h"
#include "daemon/history/pod_names.h"
#include "daemon/history/table_check.h"
#include "daemon/history/words.h"

namespace profd::history {
namespace {

using ksym::ErrorCode;
using ksym::Fail;
using ksym::Result;
using ksym::Status;

}  // namespace

// Gives what the wanted rows of one file need to the profile, each once.
class RangeProfile::File {
 public:
  File(const Tables& tables, RangeProfile& range)
      : tables_(tables),
        range_(range),
        filter_(tables, range.selection_),
        names_(tables),
        counts_(tables),
        kinds_(tables.kinds.size()),
        strings_(tables.strings.size()),
        labels_(tables.strings.size()),
        frames_(tables.functions.size()),
        stacks_(tables.nodes.size()) {}

  Status Add() {
    // Nothing is added of a file that has anything wrong.
    if (auto right = CheckTables(tables_); !right) return right;
    if (auto found = FindKinds(); !found) return found;
    for (const Row& row : tables_.rows) {
      if (!filter_.HasPart(row.part)) continue;
      if (!filter_.HasRow(row)) {
        counts_.LeaveOut(row);
        continue;
      }
      counts_.Take(row);
      if (auto added = AddRow(row); !added) return added;
    }
    AddParts();
    return {};
  }

 private:
  Status FindKinds() {
    for (uint32_t part = 0; part < tables_.parts.size(); ++part) {
      if (!filter_.HasPart(part)) continue;
      const Setting& setting = tables_.settings[tables_.parts[part].setting];
      for (uint32_t i = 0; i < setting.kinds; ++i) {
        auto& place = kinds_[setting.first_kind + i];
        const SampleKind kind =
            SampleKindOf(tables_, tables_.kinds[setting.first_kind + i]);
        const std::string& wanted = range_.selection_.kind;
        if (place || (!wanted.empty() && kind.name != wanted)) continue;
        const auto found = range_.PlaceOf(kind);
        if (!found) return Fail(found.error());
        place = *found;
      }
    }
    return {};
  }

  Status AddRow(const Row& row) {
    const Series& series = tables_.series[row.series];
    // The filter takes rows of kinds that were found, and no others.
    range_.builder_.AddSample(
        {.comm = String(series.comm),
         .pid = series.pid,
         .tid = series.tid,
         .cgroup = String(series.cgroup),
         .labels = LabelsOf(series.cgroup),
         .user_state = static_cast<StackState>(series.user_state),
         .kernel_state = static_cast<StackState>(series.kernel_state),
         .kind = kinds_[series.kind].value_or(0),
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

  LabelSetId LabelsOf(uint32_t cgroup) {
    auto& known = labels_[cgroup];
    if (!known) known = range_.builder_.AddLabels(names_.LabelsOf(cgroup));
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

  FrameId FrameOf(uint32_t id) {
    auto& known = frames_[id];
    if (known) return *known;
    const Function& function = tables_.functions[id];
    known = range_.builder_.AddFrame(
        {.name = String(function.name),
         .object = String(function.object),
         .build_id = String(function.build_id),
         .kind = KindOfFunction(tables_, function),
         .reason = FindReason(tables_.strings.Get(function.reason))
                       .value_or(ksym::Unresolved::kNone),
         .file = String(function.file),
         .function = String(function.function),
         .first_line = function.first_line});
    return *known;
  }

  void AddParts() {
    for (uint32_t i = 0; i < tables_.parts.size(); ++i) {
      if (!filter_.HasPart(i)) continue;
      range_.builder_.Add(counts_.Of(i));
      range_.NotePlace(tables_, filter_.PartIn(i));
    }
  }

  const Tables& tables_;
  RangeProfile& range_;
  const FileFilter filter_;
  const PodNames names_;
  PartCounts counts_;
  std::vector<std::optional<SampleKindId>> kinds_;
  std::vector<std::optional<StringId>> strings_;
  std::vector<std::optional<LabelSetId>> labels_;  // by cgroup
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
  if (!has_kinds_) metadata_.kinds.clear();
  has_kinds_ = true;
  std::vector<SampleKind>& kinds = metadata_.kinds;
  // Rates are told apart until the end: they say what a sample stands for.
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
  if (coverage_.Add(tables, part) == CoverageAdder::Step::kFirst) {
    metadata_.start_unix_ns = part.start_unix_ns;
  }
  AddCaptureFacts(tables, part, metadata_);
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
