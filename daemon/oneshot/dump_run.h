// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "daemon/oneshot/options.h"

namespace profd {

// Dumps the threads that the options choose and writes them. Blocks until that
// is done; returns the exit status and says on stderr what went wrong.
int RunDump(ProfileOptions options);

// Prints a text to stdout; returns the exit status.
int PrintText(std::string_view text);

}  // namespace profd
