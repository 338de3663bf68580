// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "daemon/files/guarded_opener.h"
#include "daemon/unwind/latencies.h"
#include "daemon/unwind/table_builder.h"
#include "daemon/unwind/unwind_file.h"
#include "daemon/unwind/unwind_maps.h"
#include "ksym/base/warning_list.h"
#include "ksym/elf/byte_source.h"
#include "ksym/process/process_image.h"
#include "ksym/unwind/stack_walk.h"
#include "ksym/unwind/unwind_table.h"

namespace profd {

// Since the start; rows_bytes: now.
struct UnwindStatistics {
  uint64_t processes = 0;          // published
  uint64_t files = 0;              // built
  uint64_t rows_bytes = 0;         // that they have
  uint64_t files_failed = 0;       // could not be opened or understood
  uint64_t files_refused = 0;      // no room; each time that it was tried
  uint64_t files_evicted = 0;      // to make room
  uint64_t processes_refused = 0;  // each time that it was tried
  uint64_t processes_evicted = 0;
  uint64_t copies = 0;          // stacks that were walked in user space
  uint64_t copies_refused = 0;  // that there was no room for
  double milliseconds = 0;      // spent building tables
  // From a process's first sample until all of its tables were there, of those
  // that lived so long.
  std::chrono::milliseconds median_delay = {};
  std::chrono::milliseconds longest_delay = {};
};

// Gives sampled processes their call-frame tables: has those of the files that
// stacks lead into built, each once, in a thread of its own, and publishes the
// lists of the processes that map them. Most of what a process maps is never on
// a stack, and neither opened nor built: such a file's first stack is copied.
// What is wanted most comes first: by stacks that wait, then by samples. Where
// memory ends, tables that nobody maps go, then those of the processes that
// were not sampled for the longest time; what there is no room for even so is
// tried again 2 s later, and what cannot be opened after ever longer times, up
// to two minutes. A file whose file system may not answer is opened by others
// (GuardedOpener); nothing here waits for it. A file that has the numbers of
// another one, as a user's overlay can show, serves the processes of its mount
// namespace alone. Not thread-safe.
class UnwindTables {
 public:
  using Clock = std::chrono::steady_clock;

  // Called between the steps of Build(), most of which take less than 1 ms. It
  // must not call this object.
  using Meanwhile = std::function<void()>;
  // `opener`: null: files are opened at once, wherever they are.
  UnwindTables(
      UnwindMaps maps, TableBuilder::Build build,
      std::shared_ptr<GuardedOpener> opener = nullptr,
      Meanwhile meanwhile = [] {});

  // Called for each process that maps an interpreter's file, with its load bias
  // there, once the file was read.
  using RuntimeObserver =
      std::function<void(const ksym::ProcessId&, const ksym::Mapping&, uint64_t,
                         const ksym::CpythonInterpreter&)>;
  void TellOfRuntimes(RuntimeObserver observer) {
    runtime_observer_ = std::move(observer);
  }

  // The process was sampled and has those mappings, perhaps more than before.
  // Opens files that are new, some 20 us each.
  void Update(const ksym::ProcessImage& image);
  // The process is busy and will be sampled: tables of the files that it maps
  // are made when nothing else wants the CPU, and kept as those that nobody
  // maps. In all so many files and bytes of them at the most, later calls and
  // larger files are passed over.
  static constexpr size_t kMostExpectedFiles = 64;
  static constexpr uint64_t kMostExpectedBytes = uint64_t{64} << 20;
  void Expect(uint32_t pid, const std::vector<ksym::Mapping>& mappings);
  // It was sampled again, then.
  void NoteSample(const ksym::ProcessId& process, Clock::time_point time);
  // It is gone.
  void Forget(const ksym::ProcessId& process);

  // Places what was built, asks for more, and publishes, for that long: one
  // file of 50 MB takes 15 ms. One that may not be ready before the deadline is
  // not asked for.
  void Build(Clock::duration budget, Clock::time_point deadline);
  // Something that a stack needs will be there to place.
  bool IsBuilding() const;
  // Waits until there is something to place, for that long at the most.
  void WaitForTable(Clock::duration time);

  // The table of the mapping's file; nothing while it is built, which is asked
  // for if need be. Valid until the next Recycle() or Update().
  std::optional<ksym::CodeAt> CodeOf(uint32_t pid,
                                     const ksym::Mapping& mapping);
  // A walk of a stack of the process did not get to where it would have gone on
  // to: all files that it maps are to have tables.
  void WantAll(const ksym::ProcessId& process);
  // A grace period has passed since the last Build(), Forget() or Update().
  void Recycle();

  UnwindStatistics statistics() const;
  // Sentences since the last call: why the kernel refused something, once, and
  // files whose tables are beyond a bound, some in all.
  std::vector<std::string> TakeWarnings() { return warnings_.Take(); }

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
  struct File {
    // The state of its place in the sampler's maps. kRefused: there was no
    // room, or it could not be opened. kNone: there is no table.
    enum class State : uint8_t { kPending, kReady, kRefused, kNone };
    State state = State::kPending;
    bool is_vdso = false;
    bool is_wanted = false;    // a stack led there, or may have
    bool has_failed = false;   // there are no rows to be had
    bool is_expected = false;  // its job is of Expect(), and nobody waits
    bool was_told = false;     // that it has no table
    bool is_apart = false;     // of one mount namespace
    bool is_for_all = false;   // it was opened, and no other has these numbers
    uint64_t job = 0;          // of the builder; 0: none
    // Where it can be opened, and what it was when it was.
    uint32_t pid = 0;
    ksym::Mapping mapping;
    struct OpenFailures {
      uint32_t rounds = 0;      // in a row
      uint64_t last_round = 0;  // of them,
      uint32_t last_pid = 0;    // and through which process
      // How much longer than others that were refused it waits the next time.
      Clock::duration patience = {};
    };
    OpenFailures open_failures;
    uint64_t size = 0;
    int64_t mtime_ns = 0;
    std::optional<uint32_t> owner;
    UnwindFile table;
    std::optional<ksym::CpythonInterpreter> cpython;
    std::vector<UnwindPiece> pieces;  // of `rows`, that have no place yet
    // Not of files that were not used for some time.
    std::shared_ptr<const ksym::UnwindTable> rows;
    uint64_t checked = 0;  // in which round it was seen to be unchanged
    uint32_t users = 0;
    Clock::time_point used;     // last: by a copied stack, or one who is gone
    Clock::time_point refused;  // until 2 s later at least

    bool is_pending() const { return state == State::kPending; }
    bool is_awaited() const { return is_pending() && is_wanted; }
  };
  // How many files of a process are not pending.
  struct Settled {
    size_t with_table = 0;
    size_t without = 0;
    void Count(const File& file) {
      if (file.is_pending()) return;
      ++(file.state == File::State::kReady ? with_table : without);
    }
    friend bool operator==(const Settled&, const Settled&) = default;
  };
  struct Process {
    std::vector<ksym::Mapping> mappings;
    std::vector<File*> files;   // by mapping; null: none
    uint64_t samples = 0;       // hints, since all tables were there
    Settled settled;            // in its last list
    Clock::time_point refused;  // its list, for want of room; else 0
    Clock::time_point first_seen;
    Clock::time_point seen;
    bool changed = true;    // the list is not what it can be by now
    bool waited = false;    // a list without some tables was put off once
    bool complete = false;  // all that were wanted were there once
    bool published = false;
    bool evicted = false;  // has no files until it is sampled again
  };

  void TellOfRuntime(const ksym::ProcessId& id, const Process& process,
                     const File& file) const;
  void TakeRuntime(File& file, BuiltTable& built);
  static Key KeyOf(const ksym::Mapping& mapping);
  File* FileOf(uint32_t pid, const ksym::Mapping& mapping);
  File* FindApart(uint32_t pid, Key key);
  static File* HandOut(File& file, uint32_t pid, const ksym::Mapping& mapping);
  bool MaySpeak(File& file, uint32_t pid, const ksym::OpenedFile& opened);
  void TakeApart();
  bool IsUnchanged(uint32_t pid, const ksym::Mapping& mapping,
                   const File& file) const;
  ksym::Result<ksym::OpenedFile> Hold(uint32_t pid,
                                      const ksym::Mapping& mapping) const;
  ksym::Result<ksym::ByteSource> OpenOnce(File& file);
  ksym::Result<ksym::ByteSource> Open(File& file);
  void Acquire(const ksym::ProcessId& id, Process& process);
  void Release(Process& process);
  void FindStale();
  void Ask(File& file, uint64_t wanted);
  void BeginOpening(File& file, uint64_t wanted);
  void TakeOpened();
  bool IsPutOff(const File& file) const;
  void FailToOpen(File& file, uint32_t pid);
  void Fail(File& file);
  void TakeBuilt();
  bool BuildFiles(const ksym::ProcessId& id, Process& process,
                  Clock::time_point until, Clock::time_point deadline);
  bool Place(File& file);
  bool PlacePieces(File& file, size_t max_slots, uint64_t begin);
  void SetRows(File& file, std::shared_ptr<const ksym::UnwindTable> rows);
  void DropRows();
  void Publish(const ksym::ProcessId& id, Process& process);
  void RefuseList(const ksym::ProcessId& id, Process& process, size_t entries);
  bool MakeRoom(uint64_t slots);
  uint64_t EvictFile();
  bool EvictProcess();
  void RetryRefused();
  uint64_t Discard(File& file);
  uint64_t DropTable(File& file);
  void Warn(const ksym::Error& error);
  void WarnOf(File& file, const std::string& why);

  // A file that is being opened by the opener, by its job.
  struct Opening {
    uint64_t id = 0;
    uint64_t wanted = 0;
    uint32_t pid = 0;
    Clock::time_point begun;
  };

  RuntimeObserver runtime_observer_;
  UnwindMaps maps_;
  const std::shared_ptr<GuardedOpener> opener_;
  const Meanwhile meanwhile_;
  TableBuilder builder_;
  std::map<Key, std::unique_ptr<File>> files_;
  bool has_apart_ = false;  // files_, since the start
  // Files whose users may have one of their mount namespace by now.
  std::set<const File*> parted_;
  std::map<ksym::ProcessId, Process> processes_;
  std::map<uint64_t, File*> queued_;  // by job
  std::map<uint64_t, Opening> openings_;
  uint64_t last_job_ = 0;
  size_t expected_jobs_ = 0;   // of queued_
  size_t expected_files_ = 0;  // ever
  uint64_t expected_bytes_ = 0;
  std::set<ksym::ProcessId> stale_;  // processes whose list is not what it will
  uint64_t row_bytes_ = 0;           // of files' rows
  Clock::time_point next_sweep_;     // of files that nobody uses
  uint64_t round_ = 1;
  bool has_newly_wanted_ = false;  // a file, since the last Build()
  // Something was freed that can be used after the next Recycle().
  bool waits_for_room_ = false;
  uint32_t evicted_for_lists_ = 0;  // processes, since then
  UnwindStatistics statistics_;
  Latencies delays_;
  ksym::WarningList warnings_;
  bool warned_ = false;
};

}  // namespace profd
