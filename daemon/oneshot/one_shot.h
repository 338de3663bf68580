// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "daemon/oneshot/options.h"

namespace profd {

// What ksym-profile exits with.
enum ExitStatus : int {
  // The report is printed, also after SIGINT or SIGTERM; where a command was
  // profiled until it ended its own status takes the place of this one.
  kExitOk = 0,
  kExitFailure = 1,  // it could not be made; one line on stderr says why
  kExitUsage = 2,
  kExitLoss = 3,  // with --strict: printed, but something was lost
};

// Does what the options ask for, from capture (or replay) to report. Blocks
// until it is done; prints to stdout and stderr.
int RunOneShot(ProfileOptions options);

}  // namespace profd
