// SPDX-License-Identifier: Apache-2.0
#include "ksym/base/sticky_directory.h"

#include <unistd.h>

namespace ksym {
namespace {

std::string DirectoryOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return path.substr(0, slash + 1);  // with it: also of "/name"
}

}  // namespace

bool IsBaitOfOthers(const std::string& path, const struct stat& status) {
  if (status.st_uid == ::geteuid()) return false;
  struct stat directory = {};
  if (::stat(DirectoryOf(path).c_str(), &directory) != 0) return false;
  constexpr mode_t kCommon = S_ISVTX | S_IWOTH;
  return (directory.st_mode & kCommon) == kCommon &&
         directory.st_uid != status.st_uid;
}

}  // namespace ksym
