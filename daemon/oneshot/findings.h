// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "daemon/oneshot/options.h"
#include "daemon/oneshot/progress.h"
#include "daemon/profile/profile.h"

namespace profd {

// What the summary says of the profile itself: how long what was sampled ran,
// or why there is no sample, and what keeps frames from having names. Nothing
// with --quiet, and of a log without names.
void SayFindings(const Profile& profile, const ProfileOptions& options,
                 Progress& progress);

}  // namespace profd
