// SPDX-License-Identifier: Apache-2.0
#include "daemon/profile/sample_kind.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace profd {
namespace {

constexpr uint64_t kNsPerSecond = 1'000'000'000;
constexpr std::string_view kNanoseconds = "nanoseconds";

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
  return {.name = is_time ? "cpu" : event,
          .unit = std::string(is_time ? kNanoseconds : "count"),
          .event = std::move(event),
          .frequency_hz = frequency_hz,
          .count_period = count_period};
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
