// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "bpf/waiting_abi.h"
#include "daemon/base/steady_clock.h"
#include "daemon/capture/bpf_object.h"
#include "daemon/capture/capture_steps.h"
#include "daemon/capture/runtimes.h"
#include "daemon/capture/sampler.h"
#include "daemon/capture/thread_times.h"
#include "daemon/files/guarded_opener.h"
#include "daemon/perf/cpu_list.h"
#include "daemon/perf/perf_event.h"
#include "daemon/profile/dumped_thread.h"
#include "daemon/profile/raw_profile.h"
#include "daemon/unwind/unwind_tables.h"
#include "ksym/base/result.h"
#include "ksym/process/process_image.h"

namespace profd {

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
  BpfConfig bpf;
  // Called for a sampled process at first sight and when it maps more files,
  // while it probably still lives.
  std::function<void(const ksym::ProcessImage&)> on_process;
  // Called in Poll() and Drain() for each process that was sampled, at least
  // once between two drains, with the id of its cgroup in the v2 hierarchy, 0
  // if that is not known; also for one that has ended. Exact store only.
  std::function<void(const ksym::ProcessId&, uint64_t)> on_sampled;
};

// Counts of what became of waits since the start.
struct WaitStatistics {
  wait_stats waits = {};
  wait_walk_stats walks = {};
  size_t sleepers = 0;  // threads whose stacks are known now
};

// A running capture: kernel -> RawProfile. Opens a sampling event on each CPU,
// follows CPUs that come and go, and takes what was counted out of the kernel.
// Tables are built in a thread that ends with it. The caller calls Poll() and
// Drain() on a timer.
class Capture final : public CaptureSteps {
 public:
  // Loads everything, checks privileges first; sampling starts with Enable().
  // Looks for interpreters in what runs already, for 20 ms at the most, or
  // 200 ms where processes are chosen.
  static ksym::Result<Capture> Start(CaptureOptions options);
  static constexpr std::chrono::milliseconds kTablesPatience{2000};
  Capture(Capture&&) noexcept;
  Capture& operator=(Capture&&) noexcept;
  ~Capture() override;

  // As known at the start; `duration_ns` is filled by Drain().
  const CaptureMetadata& metadata() const;

  ksym::Status Enable();
  Advice Poll() override;
  void BuildTables(SteadyClock::duration budget,
                   SteadyClock::time_point deadline) override;
  bool IsBuildingTables() const override;
  bool IsNaming() const override;
  bool IsFilling() const override;
  bool IsQuiet() const override;
  int bell() const override;
  UnwindStatistics unwind_statistics() const;
  RuntimeStatistics runtime_statistics() const;
  // Takes what sleeps on into the interval, where WaitWalks::kIntervals is
  // asked for; before the drain that ends one. Waits for tables as Drain()
  // does.
  ksym::Status WalkSleepers(std::chrono::milliseconds patience);
  // As of the last walk.
  WaitStatistics wait_statistics() const;
  // The times of threads all the while, where waits are sampled; after Stop().
  const ThreadTimes& thread_times() const;
  // All threads as they were when sampling ended, where they are dumped; after
  // Stop(). Their samples are of ThreadKind().
  const std::vector<DumpedThread>& dumped_threads() const;
  ksym::Result<RawProfile> Drain(std::chrono::milliseconds patience) override;
  // Stops sampling and drains; without a grace period.
  ksym::Result<RawProfile> Stop(
      std::chrono::milliseconds patience = kTablesPatience);

 private:
  class Impl;
  explicit Capture(std::unique_ptr<Impl> impl);

  std::unique_ptr<Impl> impl_;
};

}  // namespace profd
