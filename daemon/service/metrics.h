#pragma once

#include <string>

#include "daemon/service/counters.h"

namespace profd {

// What the service counts, and this process's CPU time and memory, in the text
// format of Prometheus (0.0.4). docs/service.md has the table. Any thread.
std::string RenderMetrics(const ServiceCounters& counters);

}  // namespace profd
