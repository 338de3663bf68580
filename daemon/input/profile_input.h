// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "daemon/profile/profile.h"
#include "ksym/base/result.h"

namespace profd {

// Whether it is a raw capture, which wants names (daemon/raw/raw_file.h).
bool IsRawCapture(std::string_view bytes);

// Reads a profile of any of the formats that have names, told by its content:
// folded stacks, ksym-profile's JSON, pprof, the text of `perf script`. The
// bytes may come from anyone. Views are not kept. Fails as the format's reader
// does; what could only be read in part has a warning in its metadata.
ksym::Result<Profile> ReadProfile(std::string_view bytes);

}  // namespace profd
