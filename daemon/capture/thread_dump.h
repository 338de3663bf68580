// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "bpf/dump_abi.h"
#include "daemon/profile/dumped_thread.h"

namespace profd {

// The thread that the record describes.
DumpedThread DumpedThreadOf(const dump_thread_record& record);

}  // namespace profd
