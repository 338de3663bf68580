#include "ksym/base/output_file.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <filesystem>
#include <system_error>
#include <utility>

#include "ksym/base/file.h"

namespace ksym {

namespace fs = std::filesystem;

std::string ResolveLinks(std::string path) {
  constexpr int kMaxLinks = 40;  // as many as the kernel follows
  std::error_code error;
  for (int i = 0; i < kMaxLinks && fs::is_symlink(path, error); ++i) {
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
  if (exists && !S_ISREG(status.st_mode)) {
    const UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CLOEXEC | O_NOCTTY));
    if (!fd.valid()) return FailErrno(errno, path);
    auto written = WriteAll(fd.get(), bytes);
    if (!written) return Fail(std::move(written.error()).WithContext(path));
    return {};
  }
  auto out = AtomicFile::Create(ResolveLinks(path));
  if (!out) return Fail(std::move(out.error()));
  if (auto ok = out->Write(bytes); !ok) return ok;
  return out->Commit(AtomicFile::Durability::kDurable);
}

}  // namespace ksym
