// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace profd {

// The Debian package that has the symbols of this machine's file at `path`,
// "postgresql-15-dbgsym", by dpkg's own lists of files; empty where they do not
// have it, or the file is of another build than `build_id`, as that of a
// container is. Reads a few megabytes of lists, `kMaxListBytes` at the most:
// 2 to 20 ms.
std::string DebugPackageOf(const std::string& path, std::string_view build_id,
                           const std::string& lists = "/var/lib/dpkg/info");

}  // namespace profd
