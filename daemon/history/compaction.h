// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <span>
#include <string>

#include "daemon/history/layout.h"
#include "daemon/history/stored_files.h"
#include "ksym/base/result.h"

namespace profd::history {

// The segments of an hour become one, which has each name and stack once.

// When the files of an hour may be put together.
struct CompactionTime {
  uint64_t now_unix_ns = 0;
  // Files up to this number were looked at before.
  uint64_t done_to = 0;
  // The begin of the journal that is being written.
  std::optional<uint64_t> journal_began_unix_ns = {};
};

// Files beside each other, by their places.
struct FileRun {
  size_t begin = 0;
  size_t count = 0;
};

// The oldest segments, two or more, that were made of one journal each, begin
// in one hour of UTC, follow each other without a number between them, and of
// which no more will come: the hour is over for so long that its last journal
// is sealed.
std::optional<FileRun> NextRun(const std::deque<StoredFile>& files,
                               const CompactionTime& time);

struct Compacted {
  FileName name;
  std::string bytes;
  size_t files = 0;  // it has the first so many of the run
};
// One segment of the first files of a run, of two or more; of as many as one
// file takes. It has no bytes where these are fewer than two. Memory:
// kMaxMergeBytes, a file and what becomes of both. The error is that of the
// run's first file, of what was made, or kLimit where `is_over`, which is asked
// before each file, says so.
ksym::Result<Compacted> Compact(const std::string& directory,
                                std::span<const FileName> run,
                                const std::function<bool()>& is_over);

}  // namespace profd::history
