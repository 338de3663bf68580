// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "daemon/oneshot/options.h"

namespace profd {

// Why a capture with these options took no sample: what was chosen slept, does
// not exist any more, or the filter let nothing through. Reads /proc.
std::string WhyNoSamples(const ProfileOptions& options);

}  // namespace profd
