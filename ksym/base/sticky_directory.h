// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/stat.h>

#include <string>

namespace ksym {

// Whether somebody else may have put that there for us to stumble over: its
// directory is one as /tmp, sticky and writable for everybody, and it belongs
// neither to this user nor to the directory's owner. The kernel refuses to
// follow such links and to write such files with fs.protected_symlinks and
// fs.protected_regular. `status`: of lstat(path).
bool IsBaitOfOthers(const std::string& path, const struct stat& status);

}  // namespace ksym
