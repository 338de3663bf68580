// SPDX-License-Identifier: Apache-2.0
#include "daemon/perf/event_times.h"

#include <unistd.h>

#include <utility>

namespace profd {

EventTimes ReadEventTimes(int fd) {
  struct {
    // The count comes first, wanted or not (perf_event_open(2), "Reading
    // results").
    uint64_t value, enabled_ns, running_ns;
  } data = {};
  if (::read(fd, &data, sizeof(data)) != sizeof(data)) return {};
  return {data.enabled_ns, data.running_ns};
}

bool EventPulse::Beats(const EventTimes& times) {
  return std::exchange(enabled_ns_, times.enabled_ns) != times.enabled_ns;
}

}  // namespace profd
