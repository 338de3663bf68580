// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "daemon/output/options.h"
#include "daemon/profile/profile.h"

namespace profd {

// An interactive flame graph: one HTML page that needs nothing but itself and
// requests nothing. Its sources are in daemon/web. Memory: the page, and 4
// bytes per frame of every stack.
std::string RenderFlamegraph(const Profile& profile,
                             const OutputOptions& options);

// The data of that page alone, as JSON: for EmptyFlamePage().
std::string RenderFlamegraphData(const Profile& profile,
                                 const OutputOptions& options);

}  // namespace profd
