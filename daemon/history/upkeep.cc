// SPDX-License-Identifier: Apache-2.0
#include "daemon/history/upkeep.h"

#include <string>
#include <utility>
#include <vector>

#include "daemon/base/now_ns.h"
#include "daemon/history/replacement.h"
#include "daemon/history/segment_merger.h"
#include "daemon/history/thinning.h"

namespace profd::history {
namespace {

using ksym::Fail;
using ksym::Result;

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

CompactionTime Upkeep::TimeOf(const Moment& moment) const {
  return {.now_unix_ns = moment.now_unix_ns,
          .done_to = compacted_to_,
          .journal_began_unix_ns = moment.journal_began_unix_ns};
}

Result<bool> Upkeep::Compact(StoredFiles& files, const Moment& moment,
                             const IsOver& is_over) {
  files.RemoveLeftovers();
  if (IsWithin(kAgainNs, failed_unix_ns_, moment.now_unix_ns)) return false;
  while (const auto run = NextRun(files.all(), TimeOf(moment))) {
    auto done = CompactRun(files, *run, is_over);
    if (!done) failed_unix_ns_ = moment.now_unix_ns;
    if (!done || *done) return done;
  }
  return false;
}

// False: the run's first file cannot go with others. It is not looked at again.
Result<bool> Upkeep::CompactRun(StoredFiles& files, const FileRun& run,
                                const IsOver& is_over) {
  std::vector<FileName> names;
  names.reserve(run.count);
  for (size_t i = 0; i < run.count; ++i) {
    names.push_back(files.all()[run.begin + i].name);
  }
  const auto compacted = history::Compact(files.directory(), names, is_over);
  // What ended for want of time says nothing of the files, and is tried again.
  if (!compacted && is_over()) return Fail(compacted.error());
  if (!compacted || compacted->files < 2) {
    compacted_to_ = names.front().sequences.last;
  }
  if (!compacted) return Fail(compacted.error());
  if (compacted->files < 2) return false;
  auto united = files.Unite(run.begin, compacted->files, compacted->name,
                            compacted->bytes);
  if (!united) return Fail(std::move(united.error()));
  compacted_to_ = compacted->name.sequences.last;
  return true;
}

bool Upkeep::IsThinningDue(const StoredFiles& files,
                           const Moment& moment) const {
  return !IsWithin(kAgainNs, failed_unix_ns_, moment.now_unix_ns) &&
         !IsWithin(kThinEachNs, thinned_unix_ns_, moment.now_unix_ns) &&
         !NextRun(files.all(), TimeOf(moment));
}

Result<std::optional<uint32_t>> Upkeep::Thin(StoredFiles& files,
                                             const Moment& moment,
                                             std::chrono::seconds age,
                                             const IsOver& is_over) {
  const uint64_t now_s = moment.now_unix_ns / kNsPerSecond;
  const auto age_s = static_cast<uint64_t>(age.count());
  if (now_s < age_s || !IsThinningDue(files, moment)) return std::nullopt;
  auto thinned = ThinOldest(files, now_s - age_s, is_over);
  if (!thinned) {
    failed_unix_ns_ = moment.now_unix_ns;
  } else if (*thinned) {
    thinned_unix_ns_ = moment.now_unix_ns;
  }
  return thinned;
}

Result<std::optional<uint32_t>> Upkeep::ThinOldest(StoredFiles& files,
                                                   uint64_t ended_s,
                                                   const IsOver& is_over) {
  int looked_at = 0;
  for (size_t i = 0; i < files.all().size(); ++i) {
    const StoredFile& file = files.all()[i];
    if (!file.name.is_segment || file.is_settled || file.name.end_s > ended_s) {
      continue;
    }
    if (looked_at++ == kMaxOutlines) break;
    auto thinned = ThinOne(files, i, is_over);
    if (!thinned || *thinned) return thinned;
  }
  return std::nullopt;
}

// Nothing: it was thinned out before, or is too large.
Result<std::optional<uint32_t>> Upkeep::ThinOne(StoredFiles& files,
                                                size_t place,
                                                const IsOver& is_over) {
  const FileName name = files.all()[place].name;
  const auto outline = ReadOutline(files.directory(), name);
  files.Settle(place);
  if (!outline) return Fail(outline.error());
  if (outline->most.thinnings != 0 || !FitTogether(*outline, {})) {
    return std::nullopt;
  }
  const auto thinned = ThinFile(files.directory(), name, is_over);
  if (!thinned) {
    // One that is damaged stays so.
    files.Settle(place, !is_over());
    return Fail(thinned.error());
  }
  auto rewritten = files.Rewrite(place, thinned->bytes);
  // After a failure its beginning tells which of the two it is.
  files.Settle(place, rewritten.has_value());
  if (!rewritten) return Fail(std::move(rewritten.error()));
  return thinned->stacks;
}

}  // namespace profd::history
