// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "daemon/fleet/fleet_options.h"

namespace profd::fleet {

// Answers at the options' address until SIGINT or SIGTERM, and ends the program
// then, whatever it is at. Returns the exit status where it cannot begin.
int RunFleet(const FleetOptions& options);

}  // namespace profd::fleet
