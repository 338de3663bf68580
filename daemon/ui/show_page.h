// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "daemon/oneshot/ui_command.h"
#include "ksym/base/result.h"

namespace profd {

// Opens the history's page in a browser, or prints its address, and lets the
// browser through to the service until SIGINT or SIGTERM. Gives up all
// capabilities first. Fails where the service is not there or has no history.
ksym::Status ShowPage(const UiArguments& arguments);

}  // namespace profd
