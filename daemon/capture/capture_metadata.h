// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "daemon/profile/raw_profile.h"
#include "daemon/unwind/unwind_tables.h"

namespace profd {

// This program's version, and the host's name, kernel and architecture, which
// are empty where uname(2) fails.
CaptureMetadata DescribeHost();
// The same figures as a profile has them.
UnwindTableStatistics DescribeTables(const UnwindStatistics& now);

}  // namespace profd
