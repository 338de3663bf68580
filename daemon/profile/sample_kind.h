// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace profd {

// A kind of samples: what they tell and how they were taken. Each sample stands
// for the same, a period, or it has a value of its own.
struct SampleKind {
  std::string name;   // "cpu"; of --value and of pprof's sample types
  std::string unit;   // of a value: "nanoseconds", "count", "bytes"
  std::string event;  // that was sampled, e.g. "cpu-clock"
  // Where each stands for the same, exactly one is not zero: samples per
  // second, or events per sample. Where each has a value, the frequency may say
  // how fine they are.
  uint64_t frequency_hz = 0;
  uint64_t count_period = 0;
  // Each sample has a value of its own: a wait's length, an allocation's size.
  bool has_values = false;

  friend bool operator==(const SampleKind&, const SampleKind&) = default;
};

// The kind of threads that want a CPU, and that of those that wait for anything
// else.
inline constexpr std::string_view kRunnableKind = "runnable";
inline constexpr std::string_view kBlockedKind = "blocked";

// A kind's place among those of its capture.
using SampleKindId = uint8_t;
// Kinds of one capture, at the most.
inline constexpr size_t kMaxSampleKinds = 16;

// The kind of samples of an event, each of which stands for the same: of CPU
// time where that is what the rate or the event says, else of events.
SampleKind EventKind(std::string event, uint64_t frequency_hz,
                     uint64_t count_period);

// The kinds of time in which threads wait: runnable and blocked, both with
// values, and with so many points in a second of each thread's time.
std::vector<SampleKind> WaitKinds(const std::string& event,
                                  uint64_t frequency_hz);
// The kind of samples that are threads: each is one.
SampleKind ThreadKind();
// How long such threads have waited by then, in nanoseconds.
SampleKind WaitedKind();
// Whether each kind is a state of threads and all are in nanoseconds, so that
// the sum over kinds makes sense: CPU time, runnable and blocked, or the latter
// two.
bool AreThreadStates(const std::vector<SampleKind>& kinds);
// All of those kinds in one: "wall" with CPU time, else "off-cpu".
SampleKind SumOfThreadStates(const std::vector<SampleKind>& kinds);
// Whether its time adds up to that of threads, of which many wait at once, and
// not to that of CPUs.
bool AddsUpToThreads(const SampleKind& kind);
// Whether it is time that adds up to that of CPUs.
bool AddsUpToCpus(const SampleKind& kind);

// Whether there is one kind that EventKind() would make of its event and rate.
bool IsOneEventKind(const std::vector<SampleKind>& kinds);

// How much each sample stands for, in the kind's unit; 0: it has its own value.
uint64_t UnitsPerSample(const SampleKind& kind);

// The word for the numbers of stacks of this kind where one kind is shown:
// "samples" where each stands for the same, else the unit of their values, or
// the kind's name where that says more.
std::string_view UnitName(const SampleKind& kind);

// The sum of so many samples in the kind's unit, at most 2^64 - 1; `value` is
// the sum of their own values.
uint64_t ValueOf(const SampleKind& kind, uint64_t count, uint64_t value);

// The kind of that name; null: there is none.
const SampleKind* FindKind(const std::vector<SampleKind>& kinds,
                           std::string_view name);

}  // namespace profd
