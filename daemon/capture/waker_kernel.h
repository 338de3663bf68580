// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "ksym/base/result.h"

namespace profd {

// The parts of the kernel that tell who wakes threads.
struct WakerKernel {
  uint32_t waking_id = 0;  // number of the type of sched_waking
  // From a CPU's run queue to its preempt_count, in bytes.
  int64_t count_offset = 0;
};

// Finds them in 10 ms; where the kernel's types lack its per-CPU variables, as
// Debian's 5.10 does, in what its symbols take to read (100 ms). kUnsupported:
// what the kernel lacks.
ksym::Result<WakerKernel> FindWakerKernel();

}  // namespace profd
