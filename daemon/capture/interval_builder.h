// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>

#include "daemon/capture/sample_clock.h"
#include "daemon/capture/sampled_count.h"
#include "daemon/profile/raw_profile.h"
#include "daemon/track/process_watch.h"
#include "ksym/process/process_image.h"

namespace profd {

class BpfObject;
class RuntimeRecords;
class StackRecords;
class WakerRecords;

// Makes the raw profile of one interval: gives each count that was taken out of
// the sampler its stacks, and says which program its process was running, with
// what that had mapped. Used by one thread.
class IntervalBuilder {
 public:
  // Where stacks, runtimes' frames and processes are known; they outlive this.
  struct Sources {
    const BpfObject& object;
    const StackRecords& stacks;
    RuntimeRecords& runtimes;
    const WakerRecords& wakers;
    ProcessWatch& watch;
  };
  // `clock`: of the interval's beginning.
  IntervalBuilder(const Sources& sources, const TakenSet& taken,
                  const SampleClock& clock)
      : sources_(sources), taken_(taken), clock_(clock) {}

  // A count whose stack is not known is one that was lost, and counted so.
  void Add(const SampledCount& counted);
  // Looks up the wakers that the stacks of samples name, and returns how many
  // are not known. After the last Add().
  uint64_t AddWakers();
  // Samples, stacks and images, and of the accounting what Add() counted.
  RawProfile Finish() &&;

 private:
  // False: it is not known.
  bool FillWaker(WakerId id, RawWaker& waker);
  TimeSlice SliceOf(const profile_key& key) const;
  // The program that the process was running with those frames.
  ksym::ProcessId FindProcess(const ksym::ProcessId& asked, StackId user_stack);
  void AddImage(const ksym::ProcessId& asked,
                const ProcessWatch::Answer& answer);
  void AddMappingsInUse();

  const Sources sources_;
  const TakenSet taken_;
  const SampleClock clock_;
  RawProfile profile_;
  std::set<ksym::ProcessId> has_own_image_;
  size_t whole_mappings_ = 0;  // of images that have all of theirs
  // Images that get their mappings in the end, and whose those are.
  std::map<ksym::ProcessId, ProcessWatch::Answer> large_;
};

}  // namespace profd
