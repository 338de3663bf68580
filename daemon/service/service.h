// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "daemon/service/service_options.h"

namespace profd {

// What ksym-profiled exits with.
enum ServiceStatus : int {
  kServiceOk = 0,       // ended by a signal; everything is written
  kServiceFailure = 1,  // one line on stderr says why
  kServiceUsage = 2,    // options or configuration
};

// Samples until a signal ends it. Blocks; logs to stderr. Call before any other
// thread starts.
int RunService(const ServiceOptions& options);

}  // namespace profd
