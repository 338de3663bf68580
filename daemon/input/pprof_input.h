// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "daemon/profile/profile.h"
#include "ksym/base/result.h"

namespace profd {

// Reads a pprof profile (profile.proto), gzip-compressed or not. Counts are of
// the sample type "samples", or else of the default one, in its unit, which the
// profile's event then names. Labels comm, pid and tid say whose a sample is;
// mappings named [kernel...] or that end in .ko are the kernel's. kCorrupt,
// kInvalid, and kLimit where it unpacks to more than 1 GiB.
ksym::Result<Profile> ReadPprof(std::string_view bytes);

}  // namespace profd
