// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>

#include "daemon/history/compaction.h"
#include "daemon/history/stored_files.h"
#include "ksym/base/result.h"

namespace profd::history {

// Decides what becomes of files when they are older: those of an hour are put
// together, and lose their rare stacks after a day. One step at a time; after a
// failure nothing for ten minutes. Not thread-safe.
class Upkeep {
 public:
  // The moment, and the begin of the journal that is being written.
  struct Moment {
    uint64_t now_unix_ns = 0;
    std::optional<uint64_t> journal_began_unix_ns = {};
  };
  using IsOver = std::function<bool()>;

  // Whether it made one segment of several: of those of the oldest hour that is
  // over. See Compact() of compaction.h.
  ksym::Result<bool> Compact(StoredFiles& files, const Moment& moment,
                             const IsOver& is_over);
  // How many stacks the oldest segment lost that has that age and was not
  // thinned out; nothing: none was. See ThinFile().
  ksym::Result<std::optional<uint32_t>> Thin(StoredFiles& files,
                                             const Moment& moment,
                                             std::chrono::seconds age,
                                             const IsOver& is_over);

 private:
  CompactionTime TimeOf(const Moment& moment) const;
  ksym::Result<bool> CompactRun(StoredFiles& files, const FileRun& run,
                                const IsOver& is_over);
  bool IsThinningDue(const StoredFiles& files, const Moment& moment) const;
  ksym::Result<std::optional<uint32_t>> ThinOldest(StoredFiles& files,
                                                   uint64_t ended_s,
                                                   const IsOver& is_over);
  static ksym::Result<std::optional<uint32_t>> ThinOne(StoredFiles& files,
                                                       size_t place,
                                                       const IsOver& is_over);

  uint64_t compacted_to_ = 0;    // files up to this number were looked at
  uint64_t failed_unix_ns_ = 0;  // either
  uint64_t thinned_unix_ns_ = 0;
};

}  // namespace profd::history
