// SPDX-License-Identifier: Apache-2.0
#include "ksym/base/output_file.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <filesystem>
#include <system_error>
#include <utility>

#include "ksym/base/file.h"
#include "ksym/base/sticky_directory.h"

namespace ksym {

namespace fs = std::filesystem;

Result<std::string> ResolveLinks(std::string path) {
  constexpr int kMaxLinks = 40;  // as many as the kernel follows
  for (int i = 0; i < kMaxLinks; ++i) {
    struct stat status = {};
    if (::lstat(path.c_str(), &status) != 0 || !S_ISLNK(status.st_mode)) break;
    if (IsBaitOfOthers(path, status)) return FailErrno(EACCES, path);
    std::error_code error;
    const fs::path target = fs::read_symlink(path, error);
    if (error) break;
    path = fs::path(path).parent_path() / target;
  }
  return path;
}

Status WriteOutputFile(const std::string& path, std::string_view bytes) {
  struct stat status = {};
  const bool exists = ::stat(path.c_str(), &status) == 0;
  if (exists && S_ISDIR(status.st_mode)) return FailErrno(EISDIR, path);
  // A file that takes its place would be there instead of the device.
  if (exists && !S_ISREG(status.st_mode)) {
    const UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CLOEXEC | O_NOCTTY));
    if (!fd.valid()) return FailErrno(errno, path);
    auto written = WriteAll(fd.get(), bytes);
    if (!written) return Fail(std::move(written.error()).WithContext(path));
    return {};
  }
  const auto target = ResolveLinks(path);
  if (!target) return Fail(target.error());
  auto out = AtomicFile::Create(*target);
  if (!out) return Fail(std::move(out.error()));
  if (auto ok = out->Write(bytes); !ok) return ok;
  return out->Commit(AtomicFile::Durability::kDurable);
}

}  // namespace ksym
