// SPDX-License-Identifier: Apache-2.0
#include "ksym/symbol_file.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <string>

#include "ksym/base/keyed_hash.h"

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
  return HashWords(WordOf(key.device_major, key.device_minor), key.inode,
                   key.path.empty() ? 0 : HashText(key.path),
                   WordOf(key.process.pid, key.is_of_descriptor ? 1 : 0),
                   key.process.start_ns);
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
