// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ksym/base/result.h"

namespace profd {

// Returns when every BPF program that was running at the call has ended. They
// run inside an RCU read-side section, so a grace period is enough:
// membarrier(2) with MEMBARRIER_CMD_GLOBAL is synchronize_rcu(). Where that is
// refused (nohz_full), an update of an array of maps waits likewise
// (maybe_wait_bpf_programs() in kernel/bpf/syscall.c). Takes 1 to 100 ms, all
// of it asleep.
ksym::Status WaitForRunningPrograms();

}  // namespace profd
