// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>
#include <vector>

#include "daemon/capture/bpf_object.h"
#include "daemon/capture/cpu_events.h"
#include "daemon/capture/sampler.h"

namespace profd {

// Samples what runs: a perf event on each CPU that runs the object's program.
class CpuSampler : public Sampler {
 public:
  CpuSampler(BpfObject& object, CpuEvents events, SampleKind kind)
      : object_(object),
        events_(std::move(events)),
        kinds_({std::move(kind)}) {}

  const std::vector<SampleKind>& kinds() const override { return kinds_; }
  ksym::Status Follow(const CpuList& online) override {
    return events_.Follow(online);
  }
  ksym::Status Enable() override { return events_.Enable(); }
  void Disable() override { events_.Disable(); }
  ksym::Result<std::vector<SampledCount>> Take(uint32_t set) override {
    return object_.TakeCounts(set);
  }
  ksym::Result<profile_stats> ReadStats(uint32_t set) override {
    return object_.ReadStats(set);
  }
  EventTimes ReadTimes() const override { return events_.ReadTimes(); }
  CpuList cpus() const override { return events_.cpus(); }

 private:
  BpfObject& object_;
  CpuEvents events_;
  std::vector<SampleKind> kinds_;
};

}  // namespace profd
