// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "daemon/capture/bpf_object.h"
#include "daemon/capture/sampler.h"
#include "daemon/capture/thread_times.h"
#include "daemon/perf/cpu_list.h"
#include "daemon/perf/perf_event.h"
#include "daemon/profile/raw_profile.h"
#include "daemon/unwind/unwind_tables.h"
#include "ksym/base/result.h"
#include "ksym/process/process_image.h"

namespace profd {

// The runtimes whose own frames are taken.
enum class Runtimes : uint8_t {
  kAuto,  // all that are known; needs unwind tables
  kNone,
};

struct CaptureOptions {
  std::string event;  // empty: the best that there is
  SamplingRate rate;
  std::optional<CpuList> cpus;      // empty: all
  std::optional<StackStore> store;  // empty: exact where the kernel can
  // kAuto where the kernel and the store can.
  Unwind unwind = Unwind::kAuto;
  std::optional<TableWalk> table_walk;  // empty: what the kernel can
  Runtimes runtimes = Runtimes::kAuto;
  // A directory for built unwind tables and the kernel's small BTF, whose
  // parent exists; empty: none.
  std::string cache_directory;
  // Opens the files that tables are of; null: they are opened at once.
  std::shared_ptr<GuardedOpener> opener;
  // Samplers besides the CPU's, in the order of their kinds.
  std::vector<SamplerMaker> more_samplers = {};
  // Its `store`, `unwind` and depths are decided by Start().
  SamplerConfig sampler;
  // Called for a sampled process at first sight and when it maps more files,
  // while it probably still lives.
  std::function<void(const ksym::ProcessImage&)> on_process;
  // Called in Poll() and Drain() for each process that was sampled, at least
  // once between two drains, with the id of its cgroup in the v2 hierarchy, 0
  // if that is not known; also for one that has ended. Exact store only.
  std::function<void(const ksym::ProcessId&, uint64_t)> on_sampled;
};

// A running capture: kernel -> RawProfile. Opens a sampling event on each CPU,
// follows CPUs that come and go, and takes what was counted out of the kernel.
// Tables are built in a thread that ends with it. The caller calls Poll() and
// Drain() on a timer.
class Capture {
 public:
  // Loads everything, checks privileges first; sampling starts with Enable().
  static ksym::Result<Capture> Start(CaptureOptions options);
  Capture(Capture&&) noexcept;
  Capture& operator=(Capture&&) noexcept;
  ~Capture();

  // What is known at the start; `duration_ns` is filled by Drain().
  const CaptureMetadata& metadata() const;

  ksym::Status Enable();
  // Takes new stacks and processes in. Every 100 ms or so: the ring buffer
  // holds what comes in between. Cost: 0.2 us per new stack, and
  // the reports of all processes. kDrainSoon: the kernel's symbols changed,
  // and what was sampled before should not be mixed with what comes after.
  enum class Advice : uint8_t { kGoOn, kDrainSoon };
  Advice Poll();
  // Has call-frame tables built for the processes that were seen in Poll(), in
  // a thread, and gives them those that are ready; see UnwindTables::Build().
  // Until then their stacks are copied.
  void BuildTables(UnwindTables::Clock::duration budget,
                   UnwindTables::Clock::time_point deadline);
  // More tables will be ready soon: a caller that polls sooner than otherwise
  // has them in use sooner.
  bool IsBuildingTables() const;
  // The kernel has much to report: a caller that polls sooner than otherwise
  // loses less.
  bool IsFilling() const;
  UnwindStatistics unwind_statistics() const;
  RuntimeStatistics runtime_statistics() const;
  // What threads did all the while, where waits are sampled; after Stop().
  const ThreadTimes& thread_times() const;
  // Everything since the last Drain(), with the accounting of that interval.
  // Sampling goes on. Sleeps for an RCU grace period (1 to 100 ms), and waits
  // for so long at the most for tables that copied stacks need.
  static constexpr std::chrono::milliseconds kTablesPatience{2000};
  ksym::Result<RawProfile> Drain(
      std::chrono::milliseconds patience = kTablesPatience);
  // Stops sampling and drains; without a grace period.
  ksym::Result<RawProfile> Stop(
      std::chrono::milliseconds patience = kTablesPatience);

 private:
  class Impl;
  explicit Capture(std::unique_ptr<Impl> impl);

  std::unique_ptr<Impl> impl_;
};

}  // namespace profd
