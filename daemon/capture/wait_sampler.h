// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "daemon/capture/bpf_object.h"
#include "daemon/capture/sampler.h"
#include "daemon/capture/wait_bells.h"
#include "daemon/capture/wait_programs.h"
#include "ksym/base/unique_fd.h"

namespace profd {

// Samples what waits: threads that want a CPU and have none, and threads that
// are blocked. Each sample has a value in nanoseconds, of which those of a
// thread come to the time that it waited, on average (bpf/waiting.bpf.h).
class WaitSampler : public Sampler {
 public:
  // All samplers of an object share its counters, and one of them tells these.
  enum class Counters : uint8_t { kTold, kByAnother };

  // The object was loaded with a WaitConfig, and lives longer.
  static ksym::Result<std::unique_ptr<Sampler>> Make(BpfObject& object,
                                                     const WaitKernel& kernel,
                                                     Counters counters,
                                                     uint64_t frequency_hz);

  const std::vector<SampleKind>& kinds() const override { return kinds_; }
  ksym::Status Follow(const CpuList& online) override;
  // Sleeps for some milliseconds.
  ksym::Status Enable() override;
  void Disable() override;
  void MakeRoom() override { bells_.Empty(); }
  ksym::Result<std::vector<SampledCount>> Take(uint32_t set) override;
  // Costs some microseconds per thread, and at the end a copy of the stack of
  // each that waits, and an RCU grace period.
  ksym::Status ReadThreads(const RecordTaker& take) override;
  ksym::Result<profile_stats> ReadStats(uint32_t set) override;
  CpuList cpus() const override { return cpus_; }

 private:
  void Detach();

  WaitSampler(BpfObject& object, const WaitKernel& kernel, Counters counters,
              uint64_t frequency_hz)
      : object_(object),
        counters_(counters),
        reads_stacks_(kernel.reads_stacks),
        parts_(object.wait_parts()),
        kinds_(WaitKinds(kernel.tracepoint(), frequency_hz)) {}

  BpfObject& object_;
  Counters counters_;
  bool reads_stacks_;  // the programs do
  WaitParts parts_;
  std::vector<SampleKind> kinds_;
  CpuList cpus_;
  WaitBells bells_;         // of CPUs that interrupt themselves
  ksym::UniqueFd resumes_;  // attached while open
  ksym::UniqueFd switch_;
  ksym::UniqueFd waking_;
};

}  // namespace profd
