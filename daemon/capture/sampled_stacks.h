// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "bpf/profile_abi.h"
#include "daemon/capture/bpf_object.h"
#include "daemon/capture/capture.h"
#include "daemon/capture/runtime_records.h"
#include "daemon/capture/sampled_count.h"
#include "daemon/capture/sleepers.h"
#include "daemon/capture/stack_copies.h"
#include "daemon/capture/stack_records.h"
#include "daemon/capture/waker_records.h"
#include "daemon/track/process_watch.h"
#include "daemon/unwind/unwind_tables.h"
#include "ksym/base/result.h"
#include "ksym/process/process_image.h"

namespace profd {

// The stacks of a capture's samples. Those that the sampler walked come with
// their frames. The user stacks of processes without tables come as copies,
// which are walked here as soon as there are tables. Both walks are by the same
// tables, and both have the frames of runtimes put into their places. Tables
// are built in a thread that ends with this; everything else is of one thread.
class SampledStacks {
 public:
  // They outlive this.
  struct Parts {
    BpfObject& object;
    const ProcessWatch& watch;
    // Called where something takes long, to empty what the kernel fills.
    std::function<void()> make_room;
    std::function<void()> make_room_if_due;
  };
  SampledStacks(const CaptureOptions& options, Parts parts);
  SampledStacks(const SampledStacks&) = delete;
  SampledStacks& operator=(const SampledStacks&) = delete;

  // Null: stacks are not walked by tables, and none is copied.
  UnwindTables* tables() { return tables_ ? &*tables_ : nullptr; }
  const UnwindTables* tables() const { return tables_ ? &*tables_ : nullptr; }
  const StackRecords& records() const { return records_; }
  RuntimeRecords& runtimes() { return runtimes_; }
  const RuntimeRecords& runtimes() const { return runtimes_; }
  // Those of a set are complete after WalkRest().
  const WakerRecords& wakers() const { return wakers_; }

  // Takes a record of a stack, a copy, a piece of one, a thread that sleeps, a
  // waker, or a runtime; ignores others, and those that are too short. Its set
  // is below PROFILE_SETS.
  void Add(const profile_record& record, size_t bytes);
  // The process was sampled and has those mappings, perhaps more than before.
  void Update(const ksym::ProcessImage& image);
  void Forget(const ksym::ProcessId& id);

  // All threads were walked over.
  void EndWalk() { sleepers_.EndWalk(); }

  // One per copy since the last call, and those of threads that sleep, so that
  // their processes are followed.
  std::vector<SampleHint> TakeHints();
  // The hints' processes were sampled, and the watch knows what they did
  // before. Walks the copies for which there are tables, some 2 us each, and
  // others where too many wait.
  void Walk(std::span<const SampleHint> hints);
  // Walks all copies of the set, whose records are there, and reads the names
  // of its functions. Waits that long for tables that the copies need; the
  // names have what is left of that time.
  void WalkRest(uint32_t set, std::chrono::milliseconds patience);
  // There were functions whose names are to be read, so there may be more.
  bool is_naming() const { return runtimes_.is_naming(); }
  // So many copies wait for tables that Walk() might walk the next one without.
  bool MustWalkSoon() const;
  // Lets the sampler copy as much as there is memory for.
  void AllowCopies();
  // So many copies were refused since the last call.
  void AdaptCopies(uint64_t refused);

  // Why runtimes' frames are not known, since the last call.
  std::vector<std::string> TakeRuntimeWarnings() {
    return runtimes_.TakeWarnings();
  }

  // The samples of the set that are not in the programs' maps, each of its
  // key's kind: walked ones, and those of threads that sleep on.
  std::vector<SampledCount> TakeWalked(uint32_t set);
  // So many of the latter since the start; no program counted them.
  uint64_t slept(uint32_t set) const { return sleepers_.taken(set); }
  // Threads that sleep and whose stacks are known.
  size_t sleepers() const { return sleepers_.known(); }
  // Has the sampler and this forget the set's stacks together: one that the
  // sampler takes for known, and that is not known here, is a sample without
  // frames.
  ksym::Status Clear(uint32_t set);

  // All but the copies that the sampler refused.
  UnwindStatistics statistics() const;

 private:
  StackCopies::Sources SourcesWith(UnwindTables& tables) {
    return {parts_.watch, tables, records_, runtimes_};
  }

  Parts parts_;
  RuntimeRecords runtimes_;
  StackRecords records_;
  StackCopies copies_;
  Sleepers sleepers_;
  WakerRecords wakers_;
  std::optional<UnwindTables> tables_;  // empty: stacks are not walked by them
};

}  // namespace profd
