#pragma once

#include <string>
#include <string_view>

#include "ksym/base/result.h"

namespace ksym {

// Where a chain of symbolic links ends, also when nothing is there yet.
std::string ResolveLinks(std::string path);

// Writes what a user wants under a name of the user's choice. A regular file
// appears whole or not at all, on the disk, where symbolic links lead; what is
// no regular file, as a device or a pipe, is written to and stays what it is.
// Errors name the path.
Status WriteOutputFile(const std::string& path, std::string_view bytes);

}  // namespace ksym
