// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "daemon/oneshot/options.h"
#include "ksym/base/result.h"

namespace profd {

// Names and writes what --raw has saved; the program's exit status.
ksym::Result<int> Replay(const ProfileOptions& options);

}  // namespace profd
