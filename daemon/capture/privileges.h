#pragma once

#include <string>

#include "ksym/base/result.h"

namespace profd {

// Whether this process may load and attach the sampler: CAP_BPF and
// CAP_PERFMON, or CAP_SYS_ADMIN. kPermission names what is missing and how to
// get it.
ksym::Status CheckCapturePrivileges();

// Raises the soft limit of open files to the hard one and, where the caller
// may, the limit of locked memory, which kernels before 5.11 charge BPF maps
// to. Best effort.
void RaiseLimits();

}  // namespace profd
