// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "daemon/oneshot/options.h"

namespace profd {

// Dumps the threads that the options choose and writes them. Blocks until that
// is done; returns the exit status and says on stderr what went wrong.
int RunDump(ProfileOptions options);

}  // namespace profd
