// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "daemon/naming/naming.h"
#include "daemon/runtime/runtime_names.h"
#include "daemon/unwind/unwind_tables.h"

namespace profd {

// What a capture did beside sampling, for -v, when it has ended: about the
// symbols of the kernel and of files, unwind tables, runtimes, and processes.
std::vector<std::string> StatisticsLines(Naming& naming,
                                         const UnwindStatistics& tables,
                                         const RuntimeStatistics& runtimes);

}  // namespace profd
