// SPDX-License-Identifier: Apache-2.0
#include "ksym/symbol_file.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <functional>
#include <string>

namespace ksym {

int SymbolFile::fd() const { return symbols ? symbols->fd() : opened.fd.get(); }

bool SymbolFile::IsOpen() const {
  return state == State::kPinned || state == State::kLoaded;
}

bool SymbolFile::IsUnchanged() const {
  if (fd() < 0) return true;       // an image in memory
  if (opened.remote) return true;  // a copy, or looked at when it is read
  struct stat status = {};
  if (::fstat(fd(), &status) != 0) return false;
  return static_cast<uint64_t>(status.st_size) == opened.size &&
         MtimeNs(status) == opened.mtime_ns;
}

size_t FileKeyHash::operator()(const FileKey& key) const {
  constexpr uint64_t kMix = 0x9e3779b97f4a7c15;
  const uint64_t device = (uint64_t{key.device_major} << 32) | key.device_minor;
  const uint64_t text =
      key.path.empty() ? 0 : std::hash<std::string_view>()(key.path);
  const uint64_t process = key.process.pid ^ key.process.start_ns ^
                           (key.is_of_descriptor ? kMix : 0);
  return static_cast<size_t>(
      ((key.inode * kMix ^ device) * kMix ^ text) * kMix ^ process);
}

Result<OpenedFile> SymbolFile::Copy() const {
  if (fd() < 0 || !IsUnchanged()) {
    return Fail(ErrorCode::kNotFound,
                std::string(path) + ": not open any more, or changed");
  }
  OpenedFile copy;
  // The file may be closed, or its descriptor given back, while the copy is
  // read.
  copy.fd = UniqueFd(::fcntl(fd(), F_DUPFD_CLOEXEC, 0));
  if (!copy.fd.valid()) return FailErrno(errno, std::string(path));
  copy.is_held = opened.is_held;
  copy.size = opened.size;
  copy.mtime_ns = opened.mtime_ns;
  copy.owner = owner;
  copy.remote = opened.remote;
  copy.room = opened.room;
  return copy;
}

}  // namespace ksym
