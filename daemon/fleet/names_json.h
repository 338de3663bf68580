// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "daemon/fleet/fleet.h"

namespace profd::fleet {

// Names and their sums as JSON; docs/fleet.md has the members. Names are
// printable.
std::string RenderNamesJson(const NamesAnswer& answer);

}  // namespace profd::fleet
