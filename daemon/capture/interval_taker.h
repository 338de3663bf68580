// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>

#include "daemon/capture/interval_accounts.h"
#include "daemon/capture/sample_clock.h"
#include "daemon/profile/raw_profile.h"
#include "daemon/track/process_watch.h"
#include "daemon/unwind/unwind_tables.h"
#include "ksym/base/result.h"

namespace profd {

class BpfObject;
class KernelWatch;
class SampledStacks;
class Samplers;
class ThreadTimes;

// Ends intervals: takes what the samplers counted in one out of the kernel, and
// makes its raw profile, with what was lost and what the capture was. Used by
// one thread.
class IntervalTaker {
 public:
  // Samples and reports were gathered in these, which outlive this object.
  struct Parts {
    const BpfObject& object;
    Samplers& samplers;
    SampledStacks& stacks;
    ProcessWatch& watch;
    KernelWatch& kernel_watch;
    ThreadTimes& thread_times;
  };
  // `first_wait_kind`: the place of waits' kinds among those of `metadata`.
  IntervalTaker(const Parts& parts, CaptureMetadata metadata,
                SampleKindId first_wait_kind);

  const CaptureMetadata& metadata() const { return metadata_; }
  IntervalAccounts& accounts() { return accounts_; }
  // Since the start, with the copies that the sampler refused.
  UnwindStatistics unwind_statistics() const;

  // The first interval begins now.
  void Begin();
  // When the interval began.
  SampleClock began() const {
    return {.monotonic_ns = start_ns_, .unix_ns = metadata_.start_unix_ns};
  }
  // Ends the interval of that set, to which no program writes any more, and
  // leaves the set empty. Waits for tables of stacks that were copied, for
  // `patience` at the most. Fails as the maps in the kernel do, and the capture
  // is of no use then.
  ksym::Result<RawProfile> Take(const TakenSet& taken,
                                std::chrono::milliseconds patience);

 private:
  SampleKindId KindOf(const profile_key& key) const;
  ksym::Status Account(uint32_t set, RawProfile& profile);
  void Describe(uint64_t end_ns, RawProfile& profile);

  const Parts parts_;
  CaptureMetadata metadata_;
  const SampleKindId first_wait_kind_;
  IntervalAccounts accounts_;
  uint64_t start_ns_ = 0;  // of the interval
};

}  // namespace profd
