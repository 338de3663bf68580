// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "daemon/service/counters.h"

namespace profd {

// One metric of the Prometheus text format (exposition format 0.0.4), without
// the prefix `ksym_`. docs/service.md has a row for each.
struct Metric {
  enum class Kind : uint8_t { kCounter, kGauge };
  enum class Unit : uint8_t { kAsCounted, kSecondsOfNs };

  std::string_view name;
  Kind kind = Kind::kCounter;
  std::string_view help;
  // Where the number is: a counter of the service, or null and a function.
  ServiceCounters::Number ServiceCounters::* counter = nullptr;
  uint64_t (*read)() = nullptr;
  Unit unit = Unit::kAsCounted;
  // Values of one metric with different labels are rows of one name beside each
  // other; only the first has a help text.
  std::string_view label = {};        // "result"
  std::string_view label_value = {};  // "made"
};

// The order is that of /metrics. Lost samples by cause and the version, which
// have labels that are not known here, are written by RenderMetrics() itself.
std::span<const Metric> Metrics();

}  // namespace profd
