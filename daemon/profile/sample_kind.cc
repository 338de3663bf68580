// SPDX-License-Identifier: Apache-2.0
#include "daemon/profile/sample_kind.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace profd {
namespace {

constexpr uint64_t kNsPerSecond = 1'000'000'000;
constexpr std::string_view kNanoseconds = "nanoseconds";
constexpr std::string_view kCpu = "cpu";
constexpr std::string_view kWall = "wall";
constexpr std::string_view kOffCpu = "off-cpu";

// Whether its event and its rate tell it.
bool IsEventKind(const SampleKind& kind) {
  return kind == EventKind(kind.event, kind.frequency_hz, kind.count_period);
}

}  // namespace

SampleKind EventKind(std::string event, uint64_t frequency_hz,
                     uint64_t count_period) {
  // A rate is one of time, and the clock counts nanoseconds.
  const bool is_time = frequency_hz != 0 ||
                       (event.starts_with("cpu-clock") && count_period != 0);
  return {.name = is_time ? std::string(kCpu) : event,
          .unit = std::string(is_time ? kNanoseconds : "count"),
          .event = std::move(event),
          .frequency_hz = frequency_hz,
          .count_period = count_period};
}

std::vector<SampleKind> WaitKinds(const std::string& event,
                                  uint64_t frequency_hz) {
  SampleKind kind = {.name = std::string(kRunnableKind),
                     .unit = std::string(kNanoseconds),
                     .event = event,
                     .frequency_hz = frequency_hz,
                     .has_values = true};
  std::vector<SampleKind> kinds = {kind};
  kind.name = kBlockedKind;
  kinds.push_back(std::move(kind));
  return kinds;
}

SampleKind ThreadKind() {
  return {.name = "threads",
          .unit = "count",
          .event = "threads",
          .frequency_hz = 0,
          .count_period = 1};
}

SampleKind WaitedKind() {
  return {.name = "waited",
          .unit = std::string(kNanoseconds),
          .event = "threads",
          .has_values = true};
}

bool AreThreadStates(const std::vector<SampleKind>& kinds) {
  return FindKind(kinds, kBlockedKind) != nullptr &&
         std::ranges::all_of(kinds, [](const SampleKind& kind) {
           return kind.unit == kNanoseconds &&
                  (kind.name == kCpu || kind.name == kRunnableKind ||
                   kind.name == kBlockedKind);
         });
}

SampleKind SumOfThreadStates(const std::vector<SampleKind>& kinds) {
  const SampleKind* cpu = FindKind(kinds, kCpu);
  const SampleKind* blocked = FindKind(kinds, kBlockedKind);
  SampleKind sum = blocked == nullptr ? SampleKind() : *blocked;
  sum.name = cpu == nullptr ? kOffCpu : kWall;
  if (cpu != nullptr) sum.event = cpu->event + " and " + sum.event;
  return sum;
}

bool AddsUpToThreads(const SampleKind& kind) {
  return kind.name == kRunnableKind || kind.name == kBlockedKind ||
         kind.name == kWall || kind.name == kOffCpu;
}

bool AddsUpToCpus(const SampleKind& kind) {
  return kind.name == kCpu && kind.unit == kNanoseconds;
}

bool IsOneEventKind(const std::vector<SampleKind>& kinds) {
  return kinds.size() == 1 && IsEventKind(kinds.front());
}

uint64_t UnitsPerSample(const SampleKind& kind) {
  if (kind.has_values) return 0;
  if (kind.frequency_hz != 0 && kind.unit == kNanoseconds) {
    return kNsPerSecond / kind.frequency_hz;
  }
  return kind.count_period;
}

std::string_view UnitName(const SampleKind& kind) {
  if (!kind.has_values) return "samples";
  return kind.unit.empty() || kind.unit == "count" ? kind.name : kind.unit;
}

uint64_t ValueOf(const SampleKind& kind, uint64_t count, uint64_t value) {
  if (kind.has_values) return value;
  uint64_t product = 0;
  return __builtin_mul_overflow(count, UnitsPerSample(kind), &product)
             ? std::numeric_limits<uint64_t>::max()
             : product;
}

const SampleKind* FindKind(const std::vector<SampleKind>& kinds,
                           std::string_view name) {
  const auto found = std::ranges::find(kinds, name, &SampleKind::name);
  return found == kinds.end() ? nullptr : &*found;
}

}  // namespace profd
