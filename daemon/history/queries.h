// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "daemon/history/coverage.h"
#include "daemon/history/function_table.h"
#include "daemon/history/history_directory.h"
#include "daemon/history/selection.h"
#include "daemon/history/timeline.h"
#include "daemon/profile/profile.h"
#include "ksym/base/result.h"

namespace profd::history {

// The questions that the history in a directory answers. Each query reads the
// files that may have parts of its time (ReadFiles() says how) and keeps one of
// them in memory beside its answer. Thread-safe: queries share nothing.
struct QueryBounds {
  size_t max_bytes = 0;  // of the answer
  // Asked before each file, of which one takes a second at the most: whether
  // nobody waits any more, or waits too long.
  std::function<bool()> is_over = [] { return false; };
};

// Samples of a time as a profile, and what is known of it.
struct HistoryAnswer {
  // Its warnings say in words what follows.
  Profile profile;
  RangeCoverage coverage;
  FilesRead read;
};

// All queries fail where ReadFiles() does, with kLimit where the answer would
// be too large, and with kInvalid where no samples are of the selection's kind.
ksym::Result<HistoryAnswer> ReadRange(const std::string& directory,
                                      const Selection& selection,
                                      const QueryBounds& bounds);

// The same for a flame graph, of any length of time: FlameAdder says how it is
// bounded. The samples are of one kind.
ksym::Result<HistoryAnswer> ReadFlame(const std::string& directory,
                                      const Selection& selection, size_t nodes,
                                      const QueryBounds& bounds);

struct FunctionAnswer {
  FunctionTable table;
  FilesRead read;
};
ksym::Result<FunctionAnswer> ReadFunctions(const std::string& directory,
                                           const Selection& selection,
                                           const QueryBounds& bounds);

struct TimelineAnswer {
  Timeline line;
  FilesRead read;
};
// The bounds of memory are TimelineAdder's. kInvalid where Begin() says so.
ksym::Result<TimelineAnswer> ReadTimeline(const std::string& directory,
                                          const TimelineRequest& request,
                                          const QueryBounds& bounds);

// A file of a history, and what its parts say.
struct FileSummary {
  FileName name;
  uint64_t bytes = 0;
  uint64_t torn_bytes = 0;
  bool is_thinned = false;
  uint64_t folded_stacks = 0;  // where it is
  uint64_t from_unix_ns = 0;   // the first part's start
  uint64_t until_unix_ns = 0;  // the last part's end
  uint64_t samples = 0;
  uint64_t lost = 0;
  RangeCoverage coverage;  // within the file
};
struct ListingAnswer {
  std::vector<FileSummary> files;  // oldest first; journals may be empty
  FilesRead read;
};
// The selection's times choose among the files; each is described as a whole.
ksym::Result<ListingAnswer> ReadListing(const std::string& directory,
                                        const Selection& selection,
                                        const QueryBounds& bounds);

}  // namespace profd::history
