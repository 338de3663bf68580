// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

namespace profd {

// The processes that there are, from /proc; those that begin or end meanwhile
// may be missing.
std::vector<uint32_t> ReadProcesses();

// How many CPUs the process used in the mean of its life, as /proc/PID/stat
// says; 0: not known. Cost: 10 us.
double ReadCpusOf(uint32_t pid);

}  // namespace profd
