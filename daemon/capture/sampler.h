// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "bpf/profile_abi.h"
#include "daemon/capture/sampled_count.h"
#include "daemon/perf/cpu_list.h"
#include "daemon/perf/event_times.h"
#include "daemon/profile/sample_kind.h"
#include "ksym/base/result.h"

namespace profd {

class BpfObject;

// Takes samples: programs, the events that start them, and the maps where they
// count. The samplers of a capture share its BpfObject: stacks, the ring, and
// the two sets, of which one is written while the other is taken. Used by one
// thread.
class Sampler {
 public:
  virtual ~Sampler() = default;

  // The kinds of its samples; always the same, and not empty.
  virtual const std::vector<SampleKind>& kinds() const = 0;

  // Told at the start and whenever the CPUs that are online may have changed.
  virtual ksym::Status Follow(const CpuList& online) = 0;
  virtual ksym::Status Enable() = 0;
  // Ends sampling: nothing counts that happens from now on. Programs may run
  // until ReadThreads() was called for the last time.
  virtual void Disable() = 0;

  // Called some ten times in a second, to empty what programs fill; a capture
  // that has a bell calls it three times at least.
  virtual void MakeRoom() {}
  // Empties a set that nobody writes to any more.
  virtual ksym::Result<std::vector<SampledCount>> Take(uint32_t set) = 0;
  // Calls `take` with records of what is there but is not sampled by an event,
  // as threads that sleep; after Enable(), and after Disable() for the last
  // time. Those of PROFILE_RECORD_THREAD are of one moment.
  using RecordTaker =
      std::function<void(const profile_record& record, size_t bytes)>;
  virtual ksym::Status ReadThreads(const RecordTaker& /*take*/) { return {}; }
  // The same whenever an interval ends, before it is drained, of what sleeps on
  // since the last one. What it would cost too much to read is left for later.
  // False: nothing was read.
  virtual ksym::Result<bool> ReadSleepers(const RecordTaker& /*take*/) {
    return false;
  }
  // Sums of everything since the start, never reset; of `taken` each sample is
  // in a set that Take() gives, in a copy, or in one of the others.
  virtual ksym::Result<profile_stats> ReadStats(uint32_t set) = 0;

  // How long it was to run and ran, summed up over the CPUs; zeros: no clock
  // tells. May interrupt the CPUs.
  virtual EventTimes ReadTimes() const { return {}; }
  // Where it runs; empty: it is bound to none.
  virtual CpuList cpus() const { return {}; }
};

// Makes a sampler when the object is loaded, which lives longer.
using SamplerMaker =
    std::function<ksym::Result<std::unique_ptr<Sampler>>(BpfObject& object)>;

// All samplers of a capture, as one. Their kinds follow each other.
class Samplers {
 public:
  // Its kinds come behind those that are there. kLimit: they are too many.
  [[nodiscard]] ksym::Status Add(std::unique_ptr<Sampler> sampler);

  const std::vector<SampleKind>& kinds() const { return kinds_; }
  ksym::Status Follow(const CpuList& online);
  ksym::Status Enable();
  void Disable();
  void MakeRoom();
  // The kinds are places in kinds().
  ksym::Result<std::vector<SampledCount>> Take(uint32_t set);
  ksym::Status ReadThreads(const Sampler::RecordTaker& take);
  ksym::Result<bool> ReadSleepers(const Sampler::RecordTaker& take);
  ksym::Result<profile_stats> ReadStats(uint32_t set);
  EventTimes ReadTimes() const;
  // Where the first one runs.
  CpuList cpus() const;

 private:
  struct Member {
    std::unique_ptr<Sampler> sampler;
    SampleKindId first_kind = 0;
  };
  std::vector<Member> members_;
  std::vector<SampleKind> kinds_;
};

}  // namespace profd
