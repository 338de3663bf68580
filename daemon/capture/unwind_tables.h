#pragma once

#include <chrono>
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "daemon/capture/unwind_file.h"
#include "daemon/capture/unwind_maps.h"
#include "ksym/base/unique_fd.h"
#include "ksym/dwarf/stack_walk.h"
#include "ksym/dwarf/unwind_cache.h"
#include "ksym/dwarf/unwind_table.h"
#include "ksym/elf/byte_source.h"
#include "ksym/process/mapped_file.h"
#include "ksym/process/process_image.h"

namespace profd {

// Since the start; rows_bytes: now.
struct UnwindStatistics {
  uint64_t processes = 0;      // published
  uint64_t files = 0;          // built
  uint64_t rows_bytes = 0;     // that they have
  uint64_t files_failed = 0;   // could not be opened or understood
  uint64_t files_refused = 0;  // no room; each time that it was tried
  uint64_t files_evicted = 0;  // to make room
  uint64_t processes_refused = 0;
  uint64_t processes_evicted = 0;
  uint64_t copies = 0;          // stacks that were walked in user space
  uint64_t copies_refused = 0;  // that there was no room for
  double milliseconds = 0;      // spent in Build()
};

// Gives sampled processes their call-frame tables: builds those of the files
// that they map, each once, and publishes a process's list when all of its are
// there. Who was sampled most comes first. Where memory ends, tables that
// nobody maps go, then those of the processes that were not sampled for the
// longest time; what there is no room for even so is tried again 2 s later. Not
// thread-safe.
class UnwindTables {
 public:
  using Clock = std::chrono::steady_clock;

  // `cache_directory`: where tables are kept from run to run; empty: nowhere.
  UnwindTables(UnwindMaps maps, const std::string& cache_directory);

  // The process was sampled and has those mappings, perhaps more than before.
  // Opens files that are new, some 20 us each.
  void Update(const ksym::ProcessImage& image);
  // It was sampled again.
  void Saw(const ksym::ProcessId& process);
  // It is gone.
  void Forget(const ksym::ProcessId& process);

  // Goes on until nothing is left to do, or for that long. One file is not
  // interrupted: it takes up to 1 ms per MB, and one that may not be ready
  // before the deadline is not begun.
  void Build(Clock::duration budget, Clock::time_point deadline);
  // The table of the mapping's file, built if it is not there. Valid until the
  // next Recycle() or Update().
  ksym::CodeAt CodeOf(uint32_t pid, const ksym::Mapping& mapping);
  // A grace period has passed since the last Build(), Forget() or Update().
  void Recycle();

  const UnwindStatistics& statistics() const { return statistics_; }
  // Why the kernel refused something, once.
  std::optional<std::string> TakeWarning();

 private:
  struct Key {
    uint32_t device_major = 0;
    uint32_t device_minor = 0;
    uint64_t inode = 0;  // 0: the vdso
    friend auto operator<=>(const Key&, const Key&) = default;
  };
  struct File {
    // kRefused: there was no room. kNone: there is no table.
    enum class State : uint8_t { kPending, kReady, kRefused, kNone };
    State state = State::kPending;
    // Where it can be opened, and opened if there was a descriptor to spare.
    uint32_t pid = 0;
    ksym::Mapping mapping;
    ksym::UniqueFd fd;
    uint64_t size = 0;
    int64_t mtime_ns = 0;
    UnwindFile table;
    // Not of files that were not used for some time.
    std::optional<ksym::UnwindTable> rows;
    uint64_t checked = 0;  // in which round it was seen to be unchanged
    uint32_t users = 0;
    Clock::time_point used;  // last, by a process that is gone
    Clock::time_point refused;

    uint64_t RowBytes() const;
  };
  struct Process {
    std::vector<ksym::Mapping> mappings;
    std::vector<File*> files;  // by mapping; null: none
    uint64_t samples = 0;      // hints, since the last publication
    Clock::time_point seen;
    bool stale = true;  // the list is not what the mappings say
    bool published = false;
    bool evicted = false;  // has no files until it is sampled again
  };

  File* FileOf(uint32_t pid, const ksym::Mapping& mapping);
  static ksym::Result<ksym::OpenedFile> Find(const File& file);
  void Open(File& file);
  void Close(File& file);
  bool IsUnchanged(const File& file) const;
  void Acquire(const ksym::ProcessId& id, Process& process);
  void Release(Process& process);
  Process* MostWanted(const ksym::ProcessId** id);
  struct Times {
    Clock::time_point until;
    Clock::time_point deadline;
  };
  bool BuildFiles(Process& process, const Times& times);
  bool LoadRows(File& file);
  ksym::Status BuildRows(const ksym::ByteSource& source, File& file);
  void BuildFile(File& file);
  bool Place(File& file);
  bool PlacePieces(File& file, size_t max_slots, uint64_t begin);
  void DropRows();
  void Publish(const ksym::ProcessId& id, Process& process);
  bool MakeRoom(uint64_t slots);
  uint64_t EvictFile();
  bool EvictProcess();
  void RetryRefused();
  uint64_t DropTable(File& file);
  void Warn(const ksym::Error& error);

  UnwindMaps maps_;
  std::optional<ksym::UnwindCache> cache_;
  std::map<Key, std::unique_ptr<File>> files_;
  std::map<ksym::ProcessId, Process> processes_;
  size_t open_files_ = 0;
  uint64_t round_ = 1;
  // Something was freed that can be used after the next Recycle().
  bool waits_for_room_ = false;
  UnwindStatistics statistics_;
  std::optional<std::string> warning_;
  bool warned_ = false;
};

}  // namespace profd
