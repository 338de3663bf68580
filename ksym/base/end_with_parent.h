// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

namespace ksym {

// For a process that was just forked: the kernel kills it when the thread that
// forked it ends (PR_SET_PDEATHSIG of prctl(2)). `parent` is getpid() from
// before the fork; if it is gone already, nothing would be sent, and this ends
// the process at once.
void EndWithParent(pid_t parent);

}  // namespace ksym
