// SPDX-License-Identifier: Apache-2.0
#include "ksym/base/sticky_directory.h"

#include <unistd.h>

#include "ksym/base/file.h"

namespace ksym {

bool IsBaitOfOthers(const std::string& path, const struct stat& status) {
  if (status.st_uid == ::geteuid()) return false;
  struct stat directory = {};
  if (::stat(ParentDirectory(path).c_str(), &directory) != 0) return false;
  constexpr mode_t kCommon = S_ISVTX | S_IWOTH;
  return (directory.st_mode & kCommon) == kCommon &&
         directory.st_uid != status.st_uid;
}

}  // namespace ksym
