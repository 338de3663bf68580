// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
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
#include "daemon/unwind/latencies.h"
#include "daemon/unwind/table_files.h"
#include "daemon/unwind/table_host.h"
#include "daemon/unwind/table_list.h"
#include "daemon/unwind/table_placer.h"
#include "daemon/unwind/table_queue.h"
#include "daemon/unwind/unwind_maps.h"
#include "ksym/base/warning_list.h"
#include "ksym/process/process_image.h"
#include "ksym/runtime/file_runtimes.h"
#include "ksym/unwind/stack_walk.h"

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

// Gives sampled processes their unwind tables: has those of the files that
// stacks lead into built, each once, in a thread of its own, and publishes the
// lists of the processes that map them. Most of what a process maps is never on
// a stack, and neither opened nor built: such a file's first stack is copied.
//
// The table that is wanted most comes first: by stacks that wait, then by
// samples. Where memory ends, tables that nobody maps go, then those of the
// processes that were not sampled for the longest time; what there is no room
// for even so is tried again 2 s later, and what cannot be opened after ever
// longer times, up to two minutes. A file whose file system may not answer is
// opened by others (DeferredOpener); nothing here waits for it. A file that has
// the numbers of another one, as a user's overlay can show, serves the
// processes of its mount namespace alone. Not thread-safe.
//
// The parts: TableFileState and TableListState say what may become of one file
// and one list, table_budget.h who goes when room ends, TableFiles knows the
// files, TablePlacer puts tables into the maps. This class decides in which
// order.
class UnwindTables {
 public:
  // Called between the steps of Build(), most of which take less than 1 ms. It
  // must not call this object.
  using Meanwhile = std::function<void()>;
  // The parts that it works with; tests put others in their places.
  struct Parts {
    std::unique_ptr<UnwindMaps> maps;
    std::unique_ptr<TableQueue> queue;
    // Null: files are opened at once, wherever they are.
    std::shared_ptr<DeferredOpener> opener = nullptr;
    Meanwhile meanwhile = [] {};
    // Empty: this machine, by the opener.
    std::optional<TableHost> host = std::nullopt;
    TableBounds bounds = {};
  };
  explicit UnwindTables(Parts parts);
  UnwindTables(const UnwindTables&) = delete;
  UnwindTables& operator=(const UnwindTables&) = delete;

  // Called for a file that holds a runtime once it was read, unless it is
  // that file in one mount namespace alone; and for each process that maps it,
  // with its load bias there.
  struct RuntimeObserver {
    std::function<void(const TableFile&)> of_file;
    std::function<void(const ksym::ProcessId&, uint64_t load_bias,
                       const ksym::FileRuntimes&)>
        of_process;
  };
  void TellOfRuntimes(RuntimeObserver observer) {
    runtime_observer_ = std::move(observer);
  }
  // Looks at files that the process maps for interpreters, before it is
  // sampled: some 50 us each. Ends at that time.
  void FindRuntimes(uint32_t pid, const std::vector<ksym::Mapping>& mappings,
                    SteadyClock::time_point until);

  // The process was sampled and has those mappings, perhaps more than before.
  // Opens files that are new, some 20 us each.
  void Update(const ksym::ProcessImage& image);
  // The process will be sampled: tables of the files that it maps are made, and
  // kept as those that nobody maps, up to the bounds of ExpectedTables.
  // kPerhaps: when nothing else wants the CPU.
  using Expected = TableFiles::Expected;
  void Expect(uint32_t pid, const std::vector<ksym::Mapping>& mappings,
              Expected expected);
  // It was sampled again, then.
  void NoteSample(const ksym::ProcessId& process, SteadyClock::time_point time);
  // It is gone.
  void Forget(const ksym::ProcessId& process);

  // Places what was built, asks for more, and publishes, for that long: one
  // file of 50 MB takes 15 ms. One that may not be ready before the deadline is
  // not asked for.
  void Build(SteadyClock::duration budget, SteadyClock::time_point deadline);
  // Something that a stack needs will be there to place, or room for it.
  bool IsBuilding() const;
  // Waits until there is something to place, for that long at the most.
  void WaitForTable(SteadyClock::duration time);

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
  UnwindTables(Parts&& parts, TableHost host);

  using Entry = std::pair<const ksym::ProcessId, TableList>;

  std::vector<TableFiles::Holder> HoldersOf(const TableFile& file,
                                            size_t most) const;
  void TellOfRuntime(const ksym::ProcessId& id, const TableList& process,
                     const TableFile& file) const;
  void TellOfFile(const TableFile& file) const;
  void TakeBuilt();
  void TakeParted();
  void Acquire(const ksym::ProcessId& id, TableList& process);
  void Release(TableList& process);
  void FindStale();
  struct Times {
    SteadyClock::time_point until;     // of placing
    SteadyClock::time_point deadline;  // of what is asked for
  };
  bool BuildList(Entry& entry, const Times& times);
  bool BuildFiles(Entry& entry, const Times& times);
  bool BuildFile(Entry& entry, size_t i, const Times& times);
  bool Place(TableFile& file);
  // A list as it would be now.
  struct Outlook {
    TableListState::Settled settled;
    bool is_whole = true;  // nothing that is wanted is to come
    bool has_any = false;  // a table
  };
  static Outlook OutlookOf(const TableList& process);
  void Publish(Entry& entry, const Outlook& outlook);
  void RefuseList(const ksym::ProcessId& id, TableList& process,
                  size_t entries);
  bool MakeRoom(uint64_t slots);
  bool EvictProcess();
  void RetryRefused();
  void Warn(const std::string& why);

  const Meanwhile meanwhile_;
  const SteadyNow now_;
  RuntimeObserver runtime_observer_;
  ksym::WarningList warnings_;
  const std::unique_ptr<UnwindMaps> maps_;
  TablePlacer placer_;
  TableFiles files_;
  std::map<ksym::ProcessId, TableList> processes_;
  std::set<ksym::ProcessId> stale_;  // processes whose list is not what it will
  // Something was freed that can be used after the next Recycle().
  bool waits_for_room_ = false;
  bool makes_room_ = false;         // for a table, elsewhere
  uint32_t evicted_for_lists_ = 0;  // processes, since then
  UnwindStatistics statistics_;
  Latencies delays_;
  bool warned_ = false;
};

}  // namespace profd
