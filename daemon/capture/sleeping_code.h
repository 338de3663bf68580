// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "bpf/profile_abi.h"
#include "daemon/capture/foreign_memory.h"
#include "daemon/runtime/code_namer.h"
#include "daemon/runtime/runtime_names.h"
#include "ksym/process/process_image.h"
#include "ksym/runtime/hotspot/code_walk.h"
#include "ksym/runtime/hotspot/layout.h"
#include "ksym/unwind/stack_walk.h"

namespace profd {

// Leads walks of copied stacks through the code of JVMs, where a walk over all
// threads found the thread asleep: the code that it is in stays until it runs.
// A thread that may be given up reads about the code from the process. Needs
// CAP_SYS_PTRACE. Not thread-safe.
class SleepingCode {
 public:
  // Time that reading takes in an interval, of all and of one process, about.
  static constexpr std::chrono::milliseconds kMaxCodeTime{1000};
  static constexpr std::chrono::milliseconds kMaxCodeTimeOfOne{500};

  SleepingCode();
  ~SleepingCode();

  // The process has a JVM, whose code is there.
  void Add(const ksym::ProcessId& process, const ksym::HotspotLayout& layout,
           std::vector<ksym::HotspotHeap> heaps);
  void Forget(const ksym::ProcessId& process);

  // The steps for one walk of the copied stack, until End(). Null: its process
  // has no JVM. They end the walk where nothing certain is known: in the code
  // of a thread that ran when its stack was copied, or of a process of which
  // nothing more is read in this interval. Some 80 us for a piece of code at
  // first sight.
  ksym::CodeSteps* Begin(const profile_copy_record& copy);
  // The frames of code that the walk found, to be named. Nothing: the thread
  // has run since its stack was copied, so that it may be other code by now,
  // and the walk is to be made again with the steps of EndInCode().
  std::optional<std::vector<RuntimeCode>> End(const profile_copy_record& copy);
  // Steps that end each walk where it comes to such code; of End()'s walk.
  ksym::CodeSteps* EndInCode();

  // After each drain.
  void EndInterval();

  const RuntimeStatistics::Sleepers& statistics() const { return statistics_; }

 private:
  struct Process;
  struct Walk;
  class Ends;

  ForeignMemory memory_;
  std::map<ksym::ProcessId, Process> processes_;
  std::chrono::nanoseconds spent_{};  // in this interval
  std::unique_ptr<Walk> walk_;        // between Begin() and End()
  std::unique_ptr<Ends> ends_;        // of the last Begin()
  RuntimeStatistics::Sleepers statistics_;
};

}  // namespace profd
