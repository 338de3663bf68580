// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "daemon/output/options.h"
#include "daemon/profile/profile.h"

namespace profd {

// A gzip-compressed pprof profile: profile.proto of github.com/google/pprof
// (perftools.profiles.Profile), as docs/formats.md describes its use here.
// Options: `by` (thread ids), `addresses` (of kernel frames). Memory: twice the
// result before compression.
std::string RenderPprof(const Profile& profile, const OutputOptions& options);

}  // namespace profd
