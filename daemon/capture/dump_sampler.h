// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "daemon/capture/bpf_object.h"
#include "daemon/capture/sampler.h"

namespace profd {

// Has no events: when sampling has ended it takes all threads as they are
// (bpf/dump.bpf.h), each as one sample under its tid. The stacks of those that
// run are the CPU sampler's.
class DumpSampler : public Sampler {
 public:
  // The object was loaded for it, and lives longer. Another sampler tells the
  // counters that they share.
  explicit DumpSampler(BpfObject& object);

  const std::vector<SampleKind>& kinds() const override { return kinds_; }
  ksym::Status Follow(const CpuList& /*online*/) override { return {}; }
  ksym::Status Enable() override { return {}; }
  void Disable() override { has_ended_ = true; }
  // Those whose stacks need no walk; the others are copies.
  ksym::Result<std::vector<SampledCount>> Take(uint32_t set) override;
  // Sleeps for a millisecond first.
  ksym::Status ReadThreads(const RecordTaker& take) override;
  ksym::Result<profile_stats> ReadStats(uint32_t set) override;

 private:
  BpfObject& object_;
  std::vector<SampleKind> kinds_;
  bool has_ended_ = false;
  std::array<std::vector<SampledCount>, PROFILE_SETS> counts_;
  std::array<uint64_t, PROFILE_SETS> taken_ = {};
};

}  // namespace profd
