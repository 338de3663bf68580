// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "daemon/perf/event_times.h"
#include "ksym/base/result.h"
#include "ksym/base/unique_fd.h"

namespace profd {

// The event that drives the sampling, as perf_event_open(2) wants it.
struct EventSpec {
  std::string name;
  uint32_t type = 0;
  uint64_t config = 0;
};

// Takes the names that perf-list(1) has for generic hardware and software
// events (cycles, cpu-clock, task-clock, page-faults ...) and rHEX, a raw PMU
// code. kInvalid lists what there is.
ksym::Result<EventSpec> ParseEvent(std::string_view name);

// Samples per second, or events per sample; exactly one is not zero.
struct SamplingRate {
  uint64_t frequency_hz = 99;
  uint64_t count_period = 0;
};

enum class IdleSamples : uint8_t { kExclude, kInclude };

// One sampling event on one CPU that runs a BPF program on each overflow.
// Starts disabled. Closing it detaches the program.
class SamplingEvent {
 public:
  // kNotFound: this machine lacks the event, or the CPU is offline.
  static ksym::Result<SamplingEvent> Open(const EventSpec& spec,
                                          SamplingRate rate, IdleSamples idle,
                                          uint32_t cpu);

  ksym::Status AttachProgram(int program_fd);
  ksym::Status Enable();
  // When it returns, no program runs because of this event any more.
  void Disable();

  EventTimes ReadTimes() const { return ReadEventTimes(fd_.get()); }

 private:
  explicit SamplingEvent(ksym::UniqueFd fd) : fd_(std::move(fd)) {}

  ksym::UniqueFd fd_;
};

// The event asked for; without a wish, `cycles` where there is a PMU, else
// `cpu-clock`. Tried out on `cpu`.
ksym::Result<EventSpec> ChooseEvent(std::string_view wish, SamplingRate rate,
                                    uint32_t cpu);

}  // namespace profd
