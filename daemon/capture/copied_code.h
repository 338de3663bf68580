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
#include "daemon/capture/process_pages.h"
#include "daemon/capture/time_allowance.h"
#include "daemon/runtime/code_namer.h"
#include "daemon/runtime/runtime_names.h"
#include "ksym/process/process_image.h"
#include "ksym/runtime/hotspot/code_walk.h"
#include "ksym/runtime/hotspot/layout.h"
#include "ksym/unwind/stack_walk.h"

namespace profd {

// Leads walks of copied stacks through the code of JVMs. Where a walk over all
// threads found the thread asleep, the code that it is in stays until it runs.
// Others have gone on: code that they were in may be freed, which takes a JVM
// longer than such a stack may be old, and there each frame has to be where its
// code calls, down to the outermost one. A thread that may be given up reads
// about the code from the process. Needs CAP_SYS_PTRACE. Not thread-safe.
class CopiedCode {
 public:
  // Time that reading takes in an interval, of all and of one process, about;
  // for threads that went on it is the time at once, and a share of what passes
  // comes to it.
  static constexpr std::chrono::milliseconds kMaxCodeTime{1000};
  static constexpr std::chrono::milliseconds kMaxCodeTimeOfOne{500};
  static constexpr double kCodeShare = 0.2;
  static constexpr double kCodeShareOfOne = 0.1;
  // A stack of a thread that went on is not followed through code when it is
  // older: methods that are no longer used are freed when all threads were seen
  // outside of them, more than once.
  static constexpr std::chrono::milliseconds kMaxAge{500};

  CopiedCode();
  ~CopiedCode();

  // The process has a JVM, whose code is there.
  void Add(const ksym::ProcessId& process, const ksym::HotspotLayout& layout,
           std::vector<ksym::HotspotHeap> heaps);
  void Forget(const ksym::ProcessId& process);

  // The steps for one walk of the copied stack, until End(). Null: its process
  // has no JVM. They end the walk where nothing certain is known: in the code
  // of a thread that went on a while ago, or of a process of which nothing more
  // is read in this interval. Some 80 us for a piece of code at first sight.
  ksym::CodeSteps* Begin(const profile_copy_record& copy);
  // The frames of code that the walk found, which had that end, to be named.
  // Nothing: it may be other code by now, and the walk is to be made again with
  // the steps of EndInCode().
  std::optional<std::vector<RuntimeCode>> End(const profile_copy_record& copy,
                                              ksym::StackEnd end);
  // Steps that end each walk where it comes to such code; of End()'s walk.
  ksym::CodeSteps* EndInCode();

  // After each drain.
  void EndInterval();

  const RuntimeStatistics::Sleepers& sleepers() const { return sleepers_; }
  const RuntimeStatistics::Copies& copies() const { return copies_; }

 private:
  struct Process;
  struct Walk;
  class Ends;

  ksym::HotspotCode& CodeFor(const profile_copy_record& copy, Process& process);
  bool IsStill(const profile_copy_record& copy, ksym::StackEnd end,
               bool is_out_of_time);

  ForeignMemory memory_;
  ProcessPages pages_;     // of a process whose threads went on,
  uint32_t pages_of_ = 0;  // by its id
  std::map<ksym::ProcessId, Process> processes_;
  std::chrono::nanoseconds spent_{};  // in this interval, on sleeping threads
  TimeAllowance time_;                // of others
  std::unique_ptr<Walk> walk_;        // between Begin() and End()
  std::unique_ptr<Ends> ends_;        // of the last Begin()
  RuntimeStatistics::Sleepers sleepers_;
  RuntimeStatistics::Copies copies_;
};

}  // namespace profd
