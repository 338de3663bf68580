// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>

#include "daemon/perf/cpu_list.h"
#include "daemon/perf/perf_event.h"
#include "ksym/base/result.h"

namespace profd {

// One sampling event per CPU, kept in step with the CPUs that are online.
class CpuEvents {
 public:
  // `wanted` empty: every CPU, also those that come later.
  CpuEvents(EventSpec spec, SamplingRate rate, IdleSamples idle,
            std::optional<CpuList> wanted, int program_fd);

  // Opens events on the CPUs of `online` that have none and closes those of
  // CPUs that left, also of one that left and came back since the last call.
  // One that fails because its CPU is gone again is left out; any other failure
  // is an error. Interrupts the CPUs, which takes some microseconds each.
  ksym::Status Follow(const CpuList& online);
  ksym::Status Enable();
  void Disable();

  // Sums over all CPUs, also those that left.
  EventTimes ReadTimes() const;
  CpuList cpus() const;

 private:
  struct Entry {
    SamplingEvent event;
    EventPulse pulse;
  };

  ksym::Status Add(uint32_t cpu);

  EventSpec spec_;
  SamplingRate rate_;
  IdleSamples idle_;
  std::optional<CpuList> wanted_;
  int program_fd_;
  bool enabled_ = false;
  std::map<uint32_t, Entry> events_;
  EventTimes closed_;  // of CPUs that left
};

}  // namespace profd
