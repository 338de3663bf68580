// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <compare>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "daemon/base/steady_clock.h"
#include "daemon/files/deferred_opener.h"
#include "daemon/unwind/table_budget.h"
#include "daemon/unwind/table_file.h"
#include "daemon/unwind/table_host.h"
#include "daemon/unwind/table_placer.h"
#include "daemon/unwind/table_queue.h"
#include "ksym/base/result.h"
#include "ksym/base/warning_list.h"
#include "ksym/elf/byte_source.h"
#include "ksym/process/mapped_file.h"
#include "ksym/process/process_image.h"

namespace profd {

// The files that sampled processes map: which one a mapping is of, through whom
// it can be opened, and the rows that are made of it. A file is opened and
// built when it is asked for. One that has the numbers of another one, as a
// user's overlay can show, serves the processes of its mount namespace alone.
// Files stay where they are until Sweep(), EvictUnused() or, where nobody uses
// them, FileOf(). Not thread-safe.
class TableFiles {
 public:
  struct Holder {
    uint32_t pid = 0;
    ksym::Mapping mapping;
  };
  // How surely a process will be sampled: one that is busy, one that was
  // chosen.
  enum class Expected : uint8_t { kPerhaps, kNow };
  // Processes that map the file, so many at the most.
  using Holders =
      std::function<std::vector<Holder>(const TableFile& file, size_t most)>;
  struct Parts {
    std::unique_ptr<TableQueue> queue;
    std::shared_ptr<DeferredOpener> opener;  // of remote files; null: none
    TableHost host;
    Holders holders;
    TableBounds bounds = {};
  };
  // The placer and the warnings outlive this.
  TableFiles(Parts parts, TablePlacer& placer, ksym::WarningList& warnings);

  // Null for memory that is no file's, or when there are too many.
  TableFile* FileOf(uint32_t pid, const ksym::Mapping& mapping);
  void Use(TableFile& file) { ++file.users; }
  void Leave(TableFile& file);
  // A stack led there, or may have.
  void Want(TableFile& file) { newly_wanted_ |= file.state.Want(); }
  // Whether a file was wanted, or is again, since the last call.
  bool TakeNewlyWanted() { return std::exchange(newly_wanted_, false); }

  // A copied stack led there: it is not the first to go when room ends.
  void Touch(TableFile& file) { file.used = host_.now(); }

  // Has it opened and built, the sooner the more it is wanted, through a
  // process that maps it and is there: those that mapped it before may be gone.
  void AskThrough(uint32_t pid, const ksym::Mapping& mapping, uint64_t wanted,
                  TableFile& file);
  // Whether a stack should wait for it: it was asked for and is not put off.
  bool IsComing(const TableFile& file);
  // Something that a stack needs will be there to take.
  bool IsBuilding() const;
  // Takes what was opened and built. Gives the files that turned out to hold an
  // interpreter.
  std::vector<TableFile*> TakeBuilt();
  void Wait(SteadyClock::duration time) const;
  // The mapping's file if it turns out to hold an interpreter and nobody asked
  // for its table yet; else null. Looks at each file once. Does not wait for
  // one that may not answer.
  TableFile* FindRuntime(uint32_t pid, const ksym::Mapping& mapping);
  // See UnwindTables::Expect().
  void Expect(uint32_t pid, const std::vector<ksym::Mapping>& mappings,
              Expected expected);

  // Whether Place() waits for nothing now.
  bool PrepareRoom(TableFile& file) { return placer_.PrepareRoom(file); }
  // Puts the file's rows where the sampler reads them; false: there is no room.
  bool Place(TableFile& file);
  // It goes without a table until RetryRefused().
  void RefuseRoom(TableFile& file);
  // True when it is to be tried again: it was refused not after `before`, and
  // who maps it was sampled since, at `seen`.
  static bool RetryRefused(TableFile& file, SteadyClock::time_point before,
                           SteadyClock::time_point seen) {
    return file.state.Retry(before, seen);
  }
  // It has failed, and the lists will say so.
  static void Close(TableFile& file) { file.state.Close(); }

  // A new pass over all processes: what could not be opened is tried again.
  void BeginRound();
  // Files whose users may have one of their own mount namespace by now.
  std::set<const TableFile*> TakeParted() { return std::exchange(parted_, {}); }

  // Takes the table that nobody mapped for longest out of the maps; the slots
  // that it had, 0: there is none.
  uint64_t EvictUnused();
  // Keeps the rows within their bound: the sampler has its own copy, here they
  // serve stacks that were copied.
  void DropRows();
  // Forgets files that nobody used for long; now and then.
  void Sweep();

  struct Counts {
    uint64_t failed = 0;   // could not be opened or understood
    uint64_t evicted = 0;  // to make room
  };
  const Counts& counts() const { return counts_; }
  SteadyClock::duration busy() const { return queue_->busy(); }

 private:
  struct Key {
    uint32_t device_major = 0;
    uint32_t device_minor = 0;
    uint64_t inode = 0;  // 0: the vdso
    // On devices that are none (major 0): an overlay numbers the files of each
    // of its layers.
    std::string path;
    // The mount namespace in whose processes alone it is that file; 0: in all.
    uint64_t mounts = 0;
    friend auto operator<=>(const Key&, const Key&) = default;
  };
  // A file that is being opened by the opener, by its job.
  struct Opening {
    uint64_t id = 0;
    uint64_t wanted = 0;
    uint32_t pid = 0;
    SteadyClock::time_point begun;
  };

  static Key KeyOf(const ksym::Mapping& mapping);
  static void SetHolder(uint32_t pid, const ksym::Mapping& mapping,
                        TableFile& file);
  static TableFile* HandOut(TableFile& file, uint32_t pid,
                            const ksym::Mapping& mapping);
  TableFile* FindApart(uint32_t pid, Key key);
  bool MaySpeak(TableFile& file, uint32_t pid, const ksym::OpenedFile& opened);
  bool IsUnchanged(uint32_t pid, const ksym::Mapping& mapping,
                   const TableFile& file) const;
  ksym::Result<ksym::ByteSource> OpenOnce(TableFile& file);
  ksym::Result<ksym::ByteSource> Open(TableFile& file);
  void Ask(TableFile& file, uint64_t wanted);
  void BeginOpening(TableFile& file, uint64_t wanted);
  bool IsPutOff(const TableFile& file) const;
  void TakeOpened();
  void EndJob(TableFile& file);
  bool TakeTable(TableFile& file, BuiltTable table);
  void NoteOpened(TableFile& file);
  void NoteOpenFailure(TableFile& file, uint32_t pid);
  void SetRows(TableFile& file, std::shared_ptr<const ksym::UnwindTable> rows);
  uint64_t Discard(TableFile& file);
  void WarnOf(TableFile& file, const std::string& why);

  const std::unique_ptr<TableQueue> queue_;
  const std::shared_ptr<DeferredOpener> opener_;
  const TableHost host_;
  const TableBounds bounds_;
  const Holders holders_;
  TablePlacer& placer_;
  ksym::WarningList& warnings_;

  std::map<Key, std::unique_ptr<TableFile>> files_;
  bool has_apart_ = false;  // files_, since the start
  std::set<const TableFile*> parted_;
  bool newly_wanted_ = false;
  std::map<uint64_t, TableFile*> queued_;  // by job
  std::map<uint64_t, Opening> openings_;
  uint64_t last_job_ = 0;
  size_t expected_jobs_ = 0;  // of queued_
  ExpectedTables expected_;
  uint64_t row_bytes_ = 0;              // of files' rows
  SteadyClock::time_point next_sweep_;  // of files that nobody uses
  uint64_t round_ = 1;
  Counts counts_;
};

}  // namespace profd
