// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "daemon/output/options.h"
#include "daemon/output/output_buffer.h"
#include "daemon/profile/profile.h"

namespace profd {

// The text of `perf script`, which the Firefox Profiler, FlameScope and
// stackcollapse-perf.pl read. Each sample is written as often as it was taken;
// when it was is not known, so those of a profile are spread evenly over its
// duration. Kernel frames are in "([kernel.kallsyms])", those of modules in
// "([NAME].ko)"; an address is the place in the file.
void WritePerfScript(const Profile& profile, const OutputOptions& options,
                     OutputBuffer& out);

}  // namespace profd
