// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string_view>

#include "daemon/profile/label_set.h"

namespace profd {

// Which variables of a process's environment become labels; the others are not
// kept.
struct EnvironmentChoice {
  bool service_name = false;         // OTEL_SERVICE_NAME
  bool resource_attributes = false;  // OTEL_RESOURCE_ATTRIBUTES

  bool any() const { return service_name || resource_attributes; }
  friend bool operator==(const EnvironmentChoice&,
                         const EnvironmentChoice&) = default;
};

// Attributes of one process, and bytes of a key and of a value.
inline constexpr size_t kMaxEnvironmentLabels = 32;
inline constexpr size_t kMaxEnvironmentKeyBytes = 128;
inline constexpr size_t kMaxEnvironmentValueBytes = 255;

struct EnvironmentLabels {
  LabelSet labels;     // in order
  size_t refused = 0;  // a key that is the profiler's, or a bound
  // A list that is none: all of it is left out, as the specification has it.
  bool is_malformed = false;
};

// The labels in an environment as in /proc/PID/environ: "NAME=VALUE", each with
// a NUL behind it. The first counts where a name is there more than once, as
// for getenv(3).
//
// OTEL_SERVICE_NAME is service.name. OTEL_RESOURCE_ATTRIBUTES is
// "KEY=VALUE,KEY=VALUE", both percent-decoded, with white space around them
// that does not count (OpenTelemetry, Resource SDK). Keys that ksym says itself
// of a process or of its container are refused: nobody is another's pod.
EnvironmentLabels ParseEnvironment(std::string_view block,
                                   const EnvironmentChoice& choice);

}  // namespace profd
