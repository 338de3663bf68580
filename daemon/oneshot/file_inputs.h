// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "daemon/profile/profile.h"
#include "ksym/base/result.h"

namespace profd {

// A saved profile of any kind that is known, with names: of a raw capture they
// are looked up on this machine. "-" is standard input, and a time of a history
// is a profile as well (history_input.h). Prints its warnings,
// with the path. At most 2 GiB.
ksym::Result<Profile> LoadProfile(const std::string& path);

// Several as one: their samples and durations are added up. A path may be a
// directory, which stands for the profiles in it and below whose names end as
// those of profiles do (.folded, .json, .pb.gz, .pprof, .perf, .raw), by name,
// at most 10,000. What cannot be read there is a warning; a path that was given
// must be readable. kInvalid: a directory without profiles, or profiles that
// were sampled at different rates.
ksym::Result<Profile> LoadProfiles(const std::vector<std::string>& paths);

}  // namespace profd
