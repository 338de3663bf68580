// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <vector>

#include "bpf/waiting_abi.h"
#include "daemon/capture/bpf_object.h"
#include "daemon/capture/foreign_memory.h"
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
                                                     const WaitConfig& config,
                                                     Counters counters);

  // A walk when an interval ends takes so many stacks, and new ones for so
  // long. The next one comes when all together take less than this part of a
  // CPU's time.
  static constexpr uint32_t kStacksOfWalk = 4096;
  static constexpr std::chrono::milliseconds kTakeWithin{50};
  static constexpr uint64_t kWalkShare = 100;

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
  // Costs 0.3 us per thread, 0.6 more for one that sleeps on, and 20 us for
  // each stack that is taken.
  ksym::Result<bool> ReadSleepers(const RecordTaker& take) override;
  ksym::Result<profile_stats> ReadStats(uint32_t set) override;
  CpuList cpus() const override { return cpus_; }

 private:
  void Detach();
  ksym::Status Walk(const RecordTaker& take);
  ksym::Status TellStatistics(const RecordTaker& take) const;

  WaitSampler(BpfObject& object, const WaitConfig& config, Counters counters)
      : object_(object),
        counters_(counters),
        walks_(config.walks),
        reads_stacks_(config.kernel.reads_stacks),
        parts_(object.wait_parts()),
        kinds_(WaitKinds(config.kernel.tracepoint(), config.frequency_hz)) {}

  BpfObject& object_;
  Counters counters_;
  WaitWalks walks_;
  bool reads_stacks_;     // the programs do
  ForeignMemory memory_;  // where they do not
  WaitParts parts_;
  std::vector<SampleKind> kinds_;
  CpuList cpus_;
  WaitBells bells_;         // of CPUs that interrupt themselves
  ksym::UniqueFd resumes_;  // attached while open
  ksym::UniqueFd switch_;
  wait_walk_stats walk_stats_ = {};
  uint64_t next_walk_ns_ = 0;  // CLOCK_MONOTONIC
  ksym::UniqueFd waking_;
};

}  // namespace profd
