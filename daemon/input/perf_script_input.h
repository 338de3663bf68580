// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "daemon/profile/profile.h"
#include "ksym/base/result.h"

namespace profd {

// Whether the text's first line that is no comment begins a sample.
bool LooksLikePerfScript(std::string_view text);

// Reads what `perf script` prints: a line for each sample with its command,
// pid, time and event, and its frames below, leaf first. Where there are
// several events the first one's samples are taken, the others' are left out
// and counted in a warning, as are lines that are neither. Each sample counts
// once, whatever its period. Fails when nothing is left.
ksym::Result<Profile> ReadPerfScript(std::string_view text);

}  // namespace profd
