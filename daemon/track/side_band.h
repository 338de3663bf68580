// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <linux/perf_event.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "daemon/perf/cpu_list.h"
#include "ksym/base/result.h"
#include "ksym/kernel/kernel_symbol_change.h"
#include "ksym/process/process_image.h"

namespace profd {

// The kernel's reports of processes, beside the samples: ids are those of
// thread groups.
struct ForkReport {
  uint32_t parent = 0;
  uint32_t child = 0;
  friend bool operator==(const ForkReport&, const ForkReport&) = default;
};
struct ExecReport {
  uint32_t pid = 0;
  friend bool operator==(const ExecReport&, const ExecReport&) = default;
};
struct MapReport {
  uint32_t pid = 0;
  ksym::Mapping mapping;
  friend bool operator==(const MapReport&, const MapReport&) = default;
};
// Its first thread ended, most often all of it.
struct ExitReport {
  uint32_t pid = 0;
  friend bool operator==(const ExitReport&, const ExitReport&) = default;
};
// Records that did not fit the ring, or may not have.
struct LostReport {
  // Which ones: who is there and which program, or what it maps.
  enum class Of : uint8_t { kProcesses, kMappings };
  Of of = Of::kProcesses;
  // Mappings of this process alone, which made too many to read all of them; 0:
  // nobody knows whose.
  uint32_t pid = 0;
  uint64_t count = 0;
  // For a loss that was reported before: the kernel says later how many.
  bool is_known = false;
  // They were of before that time.
  uint64_t until_ns = 0;
  friend bool operator==(const LostReport&, const LostReport&) = default;
};

struct SideBandEvent {
  uint64_t time_ns = 0;  // CLOCK_MONOTONIC
  std::variant<std::monostate, ksym::KernelSymbolChange, ForkReport, ExecReport,
               MapReport, ExitReport, LostReport>
      report;

  friend bool operator==(const SideBandEvent&, const SideBandEvent&) = default;
};

// Decodes one record with the sample_id that SideBand asks for
// (perf_event_open(2), "MMAP layout"). The report is empty for what is of no
// interest and for records too short for what they claim.
SideBandEvent ParseSideBandRecord(std::span<const std::byte> record);
// Whether the record is of no interest, at little cost: a thread that is not a
// process's first one, which any user can start and end 50,000 times a second,
// or one that gave itself another name. `ids`: what follows the header, pid,
// ppid and tid.
bool IsOfThread(const perf_event_header& header,
                const std::array<uint32_t, 3>& ids);

// Two dummy events per CPU whose rings receive those records: mappings have one
// of their own, as a process that maps without end fills it, and must not cost
// the reports of who is there. Needs CAP_PERFMON. Nothing is woken up: read it
// on a timer.
class SideBand {
 public:
  // Rings have the first size where that may be locked, so that who starts
  // threads, gives them names or maps without end leaves room for others; those
  // of one kind have no more than the second together. The third holds what
  // 1,000 short processes report of themselves, the fourth what 100 of them
  // map. Both are less than an unprivileged user may lock per CPU
  // (perf_event_mlock_kb, 516).
  static constexpr size_t kMaxRingBytes = size_t{1} << 20;
  static constexpr size_t kAllRingBytes = size_t{8} << 20;
  static constexpr size_t kMinProcessBytes = 256 * 1024;
  static constexpr size_t kMinMappingBytes = 128 * 1024;
  // Mappings of one process that a call of Read() tells of, from each CPU.
  static constexpr size_t kMaxMappingsOfOne = 1000;

  struct Options {
    bool kernel_symbols = true;
    bool processes = true;
  };
  explicit SideBand(Options options);
  ~SideBand();
  SideBand(SideBand&&) noexcept;
  SideBand& operator=(SideBand&&) noexcept;

  // Opens rings on CPUs that have none and closes those of CPUs that left, also
  // of one that left and came back since the last call; what was in them is in
  // the next Read(). A CPU that is new since the last call counts as one whose
  // reports were lost. Interrupts the CPUs, which takes some microseconds each.
  ksym::Status Follow(const CpuList& online);
  // Everything up to that time since the last call, sorted by time; later
  // reports wait for the next call. `until_ns`: of CLOCK_MONOTONIC, not later
  // than the call. Rings are read one after the other, so what came meanwhile
  // is there in part only: of a process that moved from a CPU that was read to
  // one that was not, the later reports without the earlier ones.
  std::vector<SideBandEvent> Read(uint64_t until_ns);
  // Makes room in the rings; the next Read() has what was there.
  void Empty();
  // Whether a ring was a quarter full at the last Read() or since: the next one
  // should come soon.
  bool is_filling() const { return is_filling_ || was_filling_; }

 private:
  class Ring;
  struct Rings {
    std::unique_ptr<Ring> processes;
    std::unique_ptr<Ring> mappings;  // null: they are not wanted
  };
  ksym::Result<Rings> Open(uint32_t cpu, size_t cpus) const;

  Options options_;
  std::map<uint32_t, Rings> rings_;
  // Reports of closed rings, and those too new for the last call.
  std::vector<SideBandEvent> waiting_;
  bool was_followed_ = false;
  bool is_filling_ = false;   // at the last Read()
  bool was_filling_ = false;  // since then
};

}  // namespace profd
