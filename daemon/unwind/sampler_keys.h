// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "bpf/unwind_abi.h"
#include "ksym/process/process_image.h"

namespace profd {

// The sampler's key of the process.
inline unwind_process SamplerKeyOf(const ksym::ProcessId& id) {
  return {.start_ns = id.start_ns, .tgid = id.pid, .exec_count = id.exec_count};
}

}  // namespace profd
