// SPDX-License-Identifier: Apache-2.0
#include "daemon/labels/trusted_directory.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <memory>

#include "ksym/base/file.h"
#include "ksym/base/trust.h"

namespace profd {
namespace {

using ksym::ErrorCode;
using ksym::Fail;
using ksym::FailErrno;
using ksym::Result;
using ksym::Status;

Status CheckOwner(int fd, const std::string& path) {
  const auto owner = ksym::OwnerOf(fd);
  if (!owner) return Fail(owner.error());
  if (ksym::IsOfMachine(*owner, ::geteuid())) return {};
  return Fail(ErrorCode::kPermission, path + ": others may write to it");
}

Result<struct stat> StatusOf(int fd, const std::string& path) {
  struct stat status = {};
  if (::fstat(fd, &status) != 0) return FailErrno(errno, path);
  return status;
}

}  // namespace

Result<TrustedDirectory> TrustedDirectory::Open(const std::string& path) {
  ksym::UniqueFd fd(
      ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NONBLOCK));
  if (!fd.valid()) return FailErrno(errno, path);
  // The owner of what was opened: the path may lead elsewhere by now.
  if (auto owned = CheckOwner(fd.get(), path); !owned) {
    return Fail(owned.error());
  }
  return TrustedDirectory(std::move(fd));
}

Status TrustedDirectory::ForEachName(
    const std::function<void(const std::string&)>& name) const {
  // Its own position, so that a second look begins at the first name.
  const int fd = ::openat(fd_.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return FailErrno(errno, "a directory");
  const std::unique_ptr<DIR, int (*)(DIR*)> directory(::fdopendir(fd),
                                                      &::closedir);
  if (!directory) {
    const int error = errno;
    ::close(fd);
    return FailErrno(error, "a directory");
  }
  size_t entries = 0;
  for (;;) {
    // readdir(3) tells its end from a failure by errno alone.
    errno = 0;
    const dirent* const entry = ::readdir(directory.get());
    if (entry == nullptr) break;
    const std::string text = static_cast<const char*>(entry->d_name);
    if (text == "." || text == "..") continue;
    if (++entries > kMaxDirectoryEntries) {
      return Fail(ErrorCode::kLimit, "a directory has too many entries");
    }
    name(text);
  }
  if (errno != 0) return FailErrno(errno, "a directory");
  return {};
}

Result<ksym::UniqueFd> TrustedDirectory::OpenBelow(const std::string& path,
                                                   int flags) const {
  const open_how how = {
      .flags = static_cast<uint64_t>(flags | O_CLOEXEC),
      .mode = 0,
      .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS};
  ksym::UniqueFd fd(static_cast<int>(
      ::syscall(SYS_openat2, fd_.get(), path.c_str(), &how, sizeof(how))));
  if (fd.valid()) return fd;
  // A file in place of a directory, and a link in place of either.
  if (errno == ENOTDIR || errno == ELOOP || errno == EXDEV) errno = ENOENT;
  return FailErrno(errno, path);
}

bool TrustedDirectory::HasDirectory(const std::string& path) const {
  const auto fd = OpenBelow(path, O_PATH | O_DIRECTORY);
  return fd && CheckOwner(fd->get(), path).has_value();
}

Result<std::string> TrustedDirectory::ReadLink(const std::string& name) const {
  ksym::UniqueFd link(
      ::openat(fd_.get(), name.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
  if (!link.valid()) return FailErrno(errno, name);
  const auto status = StatusOf(link.get(), name);
  if (!status) return Fail(status.error());
  if (!S_ISLNK(status->st_mode)) return FailErrno(ENOENT, name);
  // Everybody may write to a link by its mode; only its owner can change it.
  if (status->st_uid != 0 && status->st_uid != ::geteuid()) {
    return Fail(ErrorCode::kPermission, name + ": it is another user's");
  }
  std::array<char, kMaxLinkBytes> target;
  const ssize_t size =
      ::readlinkat(link.get(), "", target.data(), target.size());
  if (size < 0) return FailErrno(errno, name);
  return std::string(target.data(), static_cast<size_t>(size));
}

Result<std::string> TrustedDirectory::ReadFile(const std::string& path,
                                               size_t max_bytes) const {
  // What it is shows before it is opened: a device has effects of its own.
  const auto held = OpenBelow(path, O_PATH);
  if (!held) return Fail(held.error());
  const auto status = StatusOf(held->get(), path);
  if (!status) return Fail(status.error());
  if (!S_ISREG(status->st_mode)) return FailErrno(ENOENT, path);
  if (auto owned = CheckOwner(held->get(), path); !owned) {
    return Fail(owned.error());
  }
  const ksym::UniqueFd fd(
      // Through its descriptor, so that it is the file that was looked at.
      ::open(("/proc/self/fd/" + std::to_string(held->get())).c_str(),
             O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!fd.valid()) return FailErrno(errno, path);
  return ksym::ReadAll(fd.get(), max_bytes);
}

Result<FileStamp> TrustedDirectory::StampOf(const std::string& path) const {
  const auto held = OpenBelow(path, O_PATH);
  if (!held) return Fail(held.error());
  const auto status = StatusOf(held->get(), path);
  if (!status) return Fail(status.error());
  return FileStamp{.inode = status->st_ino,
                   .changed_s = status->st_ctim.tv_sec,
                   .changed_ns = status->st_ctim.tv_nsec,
                   .size_bytes = status->st_size};
}

}  // namespace profd
