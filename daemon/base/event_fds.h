// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <signal.h>

#include "ksym/base/result.h"
#include "ksym/base/unique_fd.h"

namespace profd {

// File descriptors for poll(2) that have news: of another thread, by
// eventfd_write(3), or a signal of the set, which the caller blocks. Reads of
// them never wait. Errors: the system's.
ksym::Result<ksym::UniqueFd> MakeEventFd();
ksym::Result<ksym::UniqueFd> MakeSignalFd(const sigset_t& signals);

}  // namespace profd
