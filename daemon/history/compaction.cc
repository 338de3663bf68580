// SPDX-License-Identifier: Apache-2.0
#include "daemon/history/compaction.h"

#include <chrono>
#include <memory>
#include <utility>

#include "daemon/base/now_ns.h"
#include "daemon/history/replacement.h"
#include "daemon/history/segment_merger.h"

namespace profd::history {
namespace {

using ksym::Fail;
using ksym::Result;

constexpr uint64_t kSecondsOfHour = 3600;
// A journal is open for ten minutes; for an hour samples keep their slices,
// which go then.
constexpr uint64_t kRestSeconds = 3600;

uint64_t HourOf(const FileName& name) { return name.begin_s / kSecondsOfHour; }

bool IsSingle(const FileName& name, const CompactionTime& time) {
  return name.is_segment && name.sequences.first == name.sequences.last &&
         name.sequences.first > time.done_to;
}

bool Follows(const FileName& before, const FileName& name) {
  return name.sequences.first == before.sequences.last + 1 &&
         HourOf(name) == HourOf(before);
}

bool IsOver(uint64_t hour, const CompactionTime& time) {
  const uint64_t now_s = time.now_unix_ns / kNsPerSecond;
  return now_s >= (hour + 1) * kSecondsOfHour + kRestSeconds;
}

bool IsOpen(uint64_t hour, const CompactionTime& time) {
  return time.journal_began_unix_ns &&
         *time.journal_began_unix_ns / kNsPerSecond / kSecondsOfHour == hour;
}

// Whether `more` fits as well; one that cannot be read does not.
bool HasRoomFor(const std::string& directory, const FileName& more,
                const SegmentOutline& there) {
  const auto outline = ReadOutline(directory, more);
  return outline && FitTogether(there, *outline);
}

}  // namespace

std::optional<FileRun> NextRun(const std::deque<StoredFile>& files,
                               const CompactionTime& time) {
  for (size_t begin = 0; begin < files.size();) {
    if (!IsSingle(files[begin].name, time)) {
      ++begin;
      continue;
    }
    size_t end = begin + 1;
    while (end < files.size() && IsSingle(files[end].name, time) &&
           Follows(files[end - 1].name, files[end].name)) {
      ++end;
    }
    const uint64_t hour = HourOf(files[begin].name);
    const bool may_grow = end == files.size() && IsOpen(hour, time);
    if (end - begin >= 2 && IsOver(hour, time) && !may_grow) {
      return FileRun{.begin = begin, .count = end - begin};
    }
    begin = end;
  }
  return std::nullopt;
}

Result<Compacted> Compact(const std::string& directory,
                          std::span<const FileName> run,
                          const std::function<bool()>& is_over) {
  auto merger = std::make_unique<SegmentMerger>();
  Compacted compacted;
  // The first one is not read for nothing.
  const auto first = ReadOutline(directory, run[0]);
  if (!first) return Fail(first.error());
  if (!HasRoomFor(directory, run[1], *first)) return compacted;
  for (const FileName& name : run) {
    if (is_over()) return GaveWay();
    // The next run begins with what does not go with these.
    if (!HasRoomFor(directory, name, merger->Outline())) break;
    const auto file = ReadWhole(directory, name);
    if (!file && compacted.files == 0) return Fail(file.error());
    if (!file || !merger->Add(*file)) break;
    ++compacted.files;
  }
  if (compacted.files < 2) return compacted;
  const Sequences sequences = {.first = run[0].sequences.first,
                               .last = run[compacted.files - 1].sequences.last};
  if (is_over()) return GaveWay();
  Tables tables = std::move(*merger).Finish();
  merger.reset();
  compacted.name = SegmentNameOf(tables, sequences);
  if (is_over()) return GaveWay();
  auto bytes = EncodeReplacement(compacted.name, std::move(tables));
  if (!bytes) return Fail(std::move(bytes.error()));
  compacted.bytes = std::move(*bytes);
  return compacted;
}

}  // namespace profd::history
