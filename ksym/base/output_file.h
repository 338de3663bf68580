// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "ksym/base/result.h"

namespace ksym {

// Where a chain of symbolic links ends, also when nothing is there yet.
// kPermission: a link of somebody else in a directory where everybody may
// write.
Result<std::string> ResolveLinks(std::string path);

// Writes what a user wants under a name of the user's choice. A regular file
// appears whole or not at all, on the disk, where symbolic links lead; what is
// no regular file, as a device or a pipe, is written to and stays what it is.
// In directories where everybody may write others' links are not followed and
// others' files not replaced. Errors name the path.
Status WriteOutputFile(const std::string& path, std::string_view bytes);

}  // namespace ksym
