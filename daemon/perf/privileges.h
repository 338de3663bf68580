// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "ksym/base/result.h"

namespace profd {

// Whether this process may load and attach the sampler: CAP_BPF and
// CAP_PERFMON, or CAP_SYS_ADMIN. kPermission names what is missing and how to
// get it.
ksym::Status CheckCapturePrivileges();

// The setting that refuses the sampler although the capabilities are there, as
// the end of an error message, with the cure; empty if it is something else.
// The texts are those of /proc/sys/kernel/perf_event_paranoid and
// /sys/kernel/security/lockdown.
std::string WhyNoEvents(std::string_view paranoid);
std::string WhyNoProgram(std::string_view lockdown);

// The same of this machine.
std::string WhyNoEventsHere();
std::string WhyNoProgramHere();

// Raises the soft limit of open files to the hard one and, where the caller
// may, the limit of locked memory, which kernels before 5.11 charge BPF maps
// to. Best effort.
void RaiseLimits();

}  // namespace profd
