// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "daemon/service/counters.h"

namespace profd {

// What the service counts, and this process's CPU time and memory, in the text
// format of Prometheus (0.0.4). docs/service.md has the table. Any thread.
std::string RenderMetrics(const ServiceCounters& counters);

// CPU time of this process since its start, and its resident memory.
uint64_t OwnCpuNs();
uint64_t OwnResidentBytes();

}  // namespace profd
