// SPDX-License-Identifier: Apache-2.0
// What becomes of a writer's files when they are older: those of an hour are
// put together, and lose their rare stacks after a day.

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string>
#include <utility>
#include <vector>

#include "daemon/base/now_ns.h"
#include "daemon/history/compaction.h"
#include "daemon/history/folder.h"
#include "daemon/history/history_writer.h"
#include "daemon/history/replacement.h"
#include "daemon/history/segment_merger.h"
#include "daemon/history/thinning.h"

namespace profd::history {
namespace {

using ksym::Fail;
using ksym::Result;
using ksym::Status;

// After a failure.
constexpr uint64_t kAgainNs = 600 * kNsPerSecond;
// One file an hour comes to its age. Where an earlier version left those of
// weeks they are thinned out in a day or so, and nobody notices.
constexpr uint64_t kThinEachNs = 120 * kNsPerSecond;
// Files whose beginnings are read at a time.
constexpr int kMaxOutlines = 256;

// Whether it was less than so long ago. A clock that was set back ends it.
bool IsWithin(uint64_t length_ns, uint64_t then_unix_ns, uint64_t now_unix_ns) {
  return now_unix_ns >= then_unix_ns && now_unix_ns - then_unix_ns < length_ns;
}

}  // namespace

CompactionTime HistoryWriter::TimeOfCompaction(uint64_t now_unix_ns) const {
  CompactionTime time = {.now_unix_ns = now_unix_ns, .done_to = compacted_to_};
  if (!adder_->empty()) {
    time.journal_began_unix_ns = adder_->tables().parts.front().start_unix_ns;
  }
  return time;
}

Status HistoryWriter::Compact(uint64_t now_unix_ns,
                              const std::function<bool()>& is_over) {
  RemoveLeftovers();
  if (IsWithin(kAgainNs, upkeep_failed_unix_ns_, now_unix_ns)) return {};
  CompactionTime time = TimeOfCompaction(now_unix_ns);
  while (const auto run = NextRun(files_, time)) {
    const auto done = CompactRun(*run, is_over);
    if (!done) {
      ++counts_.compaction_failures;
      upkeep_failed_unix_ns_ = now_unix_ns;
      return Fail(done.error());
    }
    if (*done) {
      ++counts_.compactions;
      break;
    }
    time.done_to = compacted_to_;
  }
  return {};
}

// False: the run's first file cannot go with others. It is not looked at again.
Result<bool> HistoryWriter::CompactRun(const FileRun& run,
                                       const std::function<bool()>& is_over) {
  std::vector<FileName> names;
  names.reserve(run.count);
  for (size_t i = 0; i < run.count; ++i) {
    names.push_back(files_[run.begin + i].name);
  }
  const auto compacted = history::Compact(folder_, names, is_over);
  // What ended for want of time says nothing of the files, and is tried again.
  if (!compacted && is_over()) return Fail(compacted.error());
  if (!compacted || compacted->files < 2) {
    compacted_to_ = names.front().sequences.last;
  }
  if (!compacted) return Fail(compacted.error());
  if (compacted->files < 2) return false;
  if (auto replaced = Replace(run, *compacted); !replaced) {
    return Fail(std::move(replaced.error()));
  }
  compacted_to_ = compacted->name.sequences.last;
  return true;
}

// The new file first, and on the disk; then those that it covers go, and
// readers take it instead from its name on. Where the disk is full nothing is
// deleted for it.
Status HistoryWriter::Replace(const FileRun& run, const Compacted& compacted) {
  auto written = WriteSegmentOnce(compacted.name, compacted.bytes);
  if (!written) {
    // It may be there without being on the disk.
    ::unlink(PathOf(compacted.name).c_str());
    return written;
  }
  const auto begin = files_.begin() + static_cast<ptrdiff_t>(run.begin);
  const auto end = begin + static_cast<ptrdiff_t>(compacted.files);
  for (auto file = begin; file != end; ++file) {
    segment_bytes_ -= file->bytes;
    Remove(file->name);
  }
  *begin = {.name = compacted.name, .bytes = compacted.bytes.size()};
  segment_bytes_ += begin->bytes;
  files_.erase(begin + 1, end);
  return {};
}

void HistoryWriter::Remove(const FileName& covered) {
  if (::unlink(PathOf(covered).c_str()) != 0 && errno != ENOENT) {
    leftovers_.push_back(covered);
  }
}

void HistoryWriter::RemoveLeftovers() {
  for (const FileName& name : std::exchange(leftovers_, {})) Remove(name);
}

bool HistoryWriter::IsThinningDue(uint64_t now_unix_ns) const {
  return limits_.thin_after.count() != 0 &&
         !IsWithin(kAgainNs, upkeep_failed_unix_ns_, now_unix_ns) &&
         !IsWithin(kThinEachNs, thinned_unix_ns_, now_unix_ns) &&
         !NextRun(files_, TimeOfCompaction(now_unix_ns));
}

Status HistoryWriter::Thin(uint64_t now_unix_ns,
                           const std::function<bool()>& is_over) {
  if (!IsThinningDue(now_unix_ns)) return {};
  const uint64_t now_s = now_unix_ns / kNsPerSecond;
  const auto age_s = static_cast<uint64_t>(limits_.thin_after.count());
  if (now_s < age_s) return {};
  int looked_at = 0;
  for (StoredFile& file : files_) {
    if (!file.name.is_segment || file.is_settled ||
        file.name.end_s > now_s - age_s) {
      continue;
    }
    if (looked_at++ == kMaxOutlines) break;
    const auto thinned = ThinOne(file, is_over);
    if (!thinned) {
      ++counts_.thinning_failures;
      upkeep_failed_unix_ns_ = now_unix_ns;
      return Fail(thinned.error());
    }
    if (!*thinned) continue;
    thinned_unix_ns_ = now_unix_ns;
    break;
  }
  return {};
}

// False: it was thinned out before, or is too large.
Result<bool> HistoryWriter::ThinOne(StoredFile& file,
                                    const std::function<bool()>& is_over) {
  const auto outline = ReadOutline(folder_, file.name);
  file.is_settled = true;
  if (!outline) return Fail(outline.error());
  if (outline->most.thinnings != 0 || !FitTogether(*outline, {})) return false;
  const auto thinned = ThinFile(folder_, file.name, is_over);
  if (!thinned) {
    // One that is damaged stays so.
    file.is_settled = !is_over();
    return Fail(thinned.error());
  }
  // Its name is that of the file whose place it takes at once: whoever has that
  // one open keeps it.
  auto written = WriteSegmentOnce(file.name, thinned->bytes);
  // After a failure it is one of the two, and tells which.
  file.is_settled = written.has_value();
  segment_bytes_ -= file.bytes;
  file.bytes = SizeOfFile(PathOf(file.name));
  segment_bytes_ += file.bytes;
  if (!written) return Fail(std::move(written.error()));
  ++counts_.thinnings;
  counts_.stacks_folded += thinned->stacks;
  return true;
}

}  // namespace profd::history
