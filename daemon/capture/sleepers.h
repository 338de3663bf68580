// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <set>
#include <unordered_map>
#include <utility>
#include <vector>

#include "bpf/profile_abi.h"
#include "bpf/waiting_abi.h"
#include "daemon/capture/sampled_count.h"
#include "daemon/capture/stack_copies.h"
#include "daemon/capture/stack_records.h"
#include "daemon/track/process_watch.h"

namespace profd {

// Threads of which this has the stacks, and the programs write down that it
// has, at the most.
inline constexpr uint32_t kMaxKnownSleepers = 16384;

// The stacks of threads that sleep on from one walk over all threads to the
// next one: each is taken once, and the walks that follow only tell for how
// long. Not thread-safe.
class Sleepers {
 public:
  // Writes down for the programs that a thread is known, or with null that it
  // is not; false: there is no room.
  using Tell = std::function<bool(uint32_t tid, const wait_known* known)>;
  explicit Sleepers(Tell tell) : tell_(std::move(tell)) {}

  // Memory of their stacks, at the most.
  static constexpr size_t kMaxStackBytes = size_t{8} << 20;

  // A thread that a walk found asleep. Ignores a record that is too short, and
  // one of a thread that is not known. set < PROFILE_SETS.
  void Add(const wait_asleep_record& record, size_t bytes);
  // Forgets those that were not found since the last call: they went on, or
  // are gone. After each whole walk.
  void EndWalk();
  // Forgets those whose stacks have frames of a runtime, whose names go.
  void ForgetMixed();
  // One per process that was found since the last call.
  std::vector<SampleHint> TakeHints();

  // Gives the samples of known threads since the last call, and puts their
  // stacks into the records. Then writes down those whose copies were walked,
  // with their stacks from the records.
  std::vector<SampledCount> Take(uint32_t set, StackRecords& records,
                                 const std::vector<SleptCopy>& copies);
  // Samples of threads that are known, since the start.
  uint64_t taken(uint32_t set) const { return taken_[set]; }
  size_t known() const { return threads_.size(); }

 private:
  struct Stack {
    StackRecords::Stored stored;
    uint32_t users = 0;
  };
  struct Thread {
    profile_key key;  // of blocked time
    bool is_found = false;
  };
  using Threads = std::unordered_map<uint32_t, Thread>;

  void Remember(const SleptCopy& copy, const StackRecords& records);
  bool Keep(StackId id, const StackRecords::Stored* stored);
  void Drop(StackId id);
  Threads::iterator Forget(Threads::iterator at);

  Tell tell_;
  Threads threads_;  // by tid
  std::unordered_map<StackId, Stack> stacks_;
  size_t stack_bytes_ = 0;
  // New ones, by tid, until their copies are walked.
  std::unordered_map<uint32_t, wait_known> new_;
  std::array<std::vector<SampledCount>, PROFILE_SETS> counts_;
  std::array<uint64_t, PROFILE_SETS> taken_ = {};
  std::vector<SampleHint> hints_;
  std::set<ksym::ProcessId> hinted_;
};

}  // namespace profd
