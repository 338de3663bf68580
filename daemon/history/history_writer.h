// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "daemon/history/history_directory.h"
#include "daemon/history/layout.h"
#include "daemon/history/part_adder.h"
#include "daemon/history/stored_files.h"
#include "daemon/history/upkeep.h"
#include "daemon/profile/profile.h"
#include "ksym/base/result.h"
#include "ksym/base/unique_fd.h"

namespace profd::history {

// What became of a writer's data, since it began.
struct WriterCounts {
  uint64_t records = 0;          // written to journals
  uint64_t segments = 0;         // made of journals
  uint64_t files_deleted = 0;    // for their age, or for room
  uint64_t files_bad = 0;        // journals that could not be read at the start
  uint64_t bytes_torn = 0;       // behind the last good record of such journals
  uint64_t parts_dropped = 0;    // that were not written
  uint64_t samples_dropped = 0;  // in these parts
  uint64_t write_failures = 0;   // of records and segments
  uint64_t compactions = 0;      // segments made of several
  uint64_t compaction_failures = 0;
  uint64_t thinnings = 0;  // segments that lost their rare stacks
  uint64_t thinning_failures = 0;
  uint64_t stacks_folded = 0;  // that these lost
};

// Writes one directory's history. A record is appended to the journal at
// each Commit(), and is on the disk when that returns. After some minutes,
// or when the tables have become large, the journal becomes a segment, and
// the segments of an hour become one, without slices, an hour after it is
// over. That one loses its rare stacks when it is old. What a journal has is
// read by others at any time. A writer that is killed loses what was not
// committed; the next one makes a segment of the journal. Not thread-safe.
class HistoryWriter {
 public:
  struct Limits {
    uint64_t max_bytes = uint64_t{256} << 20;  // of all files
    std::chrono::seconds max_age = std::chrono::hours(24 * 30);
    // How long a journal grows.
    std::chrono::seconds journal = std::chrono::minutes(10);
    // The tables in memory; reached earlier on hosts with many CPUs.
    size_t journal_memory_bytes = size_t{16} << 20;
    // Age at which segments lose their rare stacks; 0: they never do.
    std::chrono::seconds thin_after = std::chrono::hours(24);
  };

  // Makes the directory, locks it and makes segments of the journals in it.
  // kInvalid: another writer has the directory. Where the disk is full, the
  // oldest files are deleted.
  static ksym::Result<HistoryWriter> Open(std::string directory, Limits limits,
                                          Run run, uint64_t now_unix_ns);

  // Remembers a part until the next Commit(). One that does not fit is dropped
  // and counted.
  void Add(const Profile& part);
  // Appends what was added to the journal and waits for the disk. After a
  // failure it is tried again with the next one. Deletes what is too old or too
  // much.
  ksym::Status Commit(uint64_t now_unix_ns);
  // Makes one segment of those of an hour that is over, if there is one. What
  // was made is on the disk before they are removed: whoever ends in between,
  // or reads meanwhile, finds all of it once. A failure is counted, and it is
  // tried again in ten minutes. A second or so; `is_over` is asked before each
  // file, and ends it with kLimit.
  ksym::Status Compact(uint64_t now_unix_ns,
                       const std::function<bool()>& is_over);
  // Thins out the oldest segment that is old enough and was not (ThinTables()
  // says how), if none is to be put together with others: one in two minutes.
  // What it was is there until what it becomes is on the disk. Failures and
  // `is_over` as for Compact().
  ksym::Status Thin(uint64_t now_unix_ns, const std::function<bool()>& is_over);
  void SetLimits(Limits limits) { limits_ = limits; }

  const WriterCounts& counts() const { return counts_; }
  uint64_t files() const {
    return stored_.all().size() + (journal_.valid() ? 1 : 0);
  }
  uint64_t bytes() const { return stored_.bytes() + journal_bytes_; }

 private:
  HistoryWriter(std::string directory, Limits limits, Run run)
      : stored_(std::move(directory)), limits_(limits), run_(std::move(run)) {}

  ksym::Status Lock();
  ksym::Status ReadDirectory();
  void RemoveCovered(const DirectoryListing& listing);
  void Recover(const FileName& journal);
  ksym::Status BeginJournal();
  ksym::Status Append();
  ksym::Status AppendOnce(const std::string& record);
  bool IsSealDue(uint64_t now_unix_ns) const;
  void Seal();
  ksym::Status WriteSegment(Tables& tables, uint64_t sequence);
  Upkeep::Moment MomentOf(uint64_t now_unix_ns) const;
  void LeaveJournal();
  void Forget();
  // False: there is none.
  bool DeleteOldest();
  void Enforce(uint64_t now_unix_ns);

  StoredFiles stored_;  // without the open journal
  Limits limits_;
  Run run_;
  WriterCounts counts_;
  ksym::UniqueFd lock_;
  Upkeep upkeep_;
  uint64_t next_sequence_ = 1;

  // The open journal. Its tables hold what it has, and what was added since.
  std::unique_ptr<PartAdder> adder_ = std::make_unique<PartAdder>();
  Sizes written_;  // of the tables: what the journal has
  ksym::UniqueFd journal_;
  FileName journal_name_;
  uint64_t journal_bytes_ = 0;    // of the header and whole records
  bool journal_is_torn_ = false;  // there is half a record behind them
  uint64_t journal_began_unix_ns_ = 0;
};

}  // namespace profd::history
