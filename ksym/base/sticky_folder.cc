// SPDX-License-Identifier: Apache-2.0
#include "ksym/base/sticky_folder.h"

#include <unistd.h>

namespace ksym {
namespace {

std::string FolderOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return path.substr(0, slash + 1);  // with it: also of "/name"
}

}  // namespace

bool IsBaitOfOthers(const std::string& path, const struct stat& status) {
  if (status.st_uid == ::geteuid()) return false;
  struct stat folder = {};
  if (::stat(FolderOf(path).c_str(), &folder) != 0) return false;
  constexpr mode_t kCommon = S_ISVTX | S_IWOTH;
  return (folder.st_mode & kCommon) == kCommon &&
         folder.st_uid != status.st_uid;
}

}  // namespace ksym
