// SPDX-License-Identifier: Apache-2.0
#include "ksym/process/mapped_file.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <string>
#include <string_view>
#include <utility>

namespace ksym {
namespace {

constexpr std::string_view kDeleted = " (deleted)";

// Where files may be: in which process's namespace, if only on local file
// systems, and if behind links.
struct Within {
  uint32_t pid = 0;  // 0: this one's
  FileSystems* local = nullptr;
  Links links = Links::kFollowInside;
};

std::unexpected<Error> FailRemote(const std::string& path) {
  return FailErrno(EREMOTE, path);
}

Result<UniqueFd> OpenAt(int directory, const std::string& path,
                        const open_how& how) {
  UniqueFd fd(static_cast<int>(
      ::syscall(SYS_openat2, directory, path.c_str(), &how, sizeof(how))));
  if (!fd.valid()) return FailErrno(errno, path);
  return fd;
}

// A regular file and what it is. It is held only: opening a device has effects
// of its own, and the path is a profiled process's choice.
struct Regular {
  UniqueFd place;
  struct stat status = {};
  bool is_served = false;  // by a program: FUSE
};

Result<Regular> HoldRegular(int directory, const std::string& path,
                            uint64_t resolve, const Within& within) {
  auto place =
      OpenAt(directory, path,
             {.flags = O_PATH | O_CLOEXEC, .mode = 0, .resolve = resolve});
  if (!place) return Fail(place.error());
  Regular file = {.place = std::move(*place)};
  // What is held now need not be what was mapped, or what the path led to.
  if (within.local != nullptr &&
      !within.local->IsLocalFile(within.pid, file.place.get())) {
    return FailRemote(path);
  }
  if (::fstat(file.place.get(), &file.status) != 0) {
    return FailErrno(errno, path);
  }
  // What is local is no FUSE file.
  file.is_served = within.local == nullptr && IsServed(file.place.get());
  if (!S_ISREG(file.status.st_mode)) {
    return Fail(ErrorCode::kUnsupported, path + ": not a regular file");
  }
  return file;
}

// By a path below a root; a link may lead anywhere.
Result<Regular> HoldBelowRoot(int root, const std::string& path,
                              const Within& within) {
  const bool is_guarded = within.local != nullptr;
  if (is_guarded && !within.local->IsLocalPath(within.pid, path)) {
    return FailRemote(path);
  }
  const bool follows = within.links == Links::kFollowInside;
  const uint64_t refused = follows && !is_guarded ? 0 : RESOLVE_NO_SYMLINKS;
  auto file = HoldRegular(root, path, RESOLVE_IN_ROOT | refused, within);
  const bool is_link = !file && file.error().sys_errno() == ELOOP;
  if (is_link && follows && is_guarded) return FailRemote(path);
  return file;
}

Result<UniqueFd> OpenPlace(int place) {
  // Through the descriptor, so that it is the file that was looked at.
  return OpenAt(AT_FDCWD, "/proc/self/fd/" + std::to_string(place),
                {.flags = O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC,
                 .mode = 0,
                 .resolve = 0});
}

OpenedFile Describe(Regular file) {
  OpenedFile opened;
  opened.fd = std::move(file.place);
  opened.is_held = true;
  opened.size = static_cast<uint64_t>(file.status.st_size);
  opened.mtime_ns = MtimeNs(file.status);
  opened.inode = file.status.st_ino;
  opened.owner = OwnerOf(file.status, file.is_served);
  return opened;
}

Result<OpenedFile> Opened(Result<OpenedFile> held, const std::string& path) {
  if (!held) return held;
  auto opened = OpenHeld(*held);
  if (!opened) return Fail(std::move(opened.error()).WithContext(path));
  return held;
}

// Whether fstat(2) gives files of this kind another device number than
// /proc/PID/maps does.
bool HasTwoDeviceNumbers(int fd) {
  struct statfs status = {};
  if (::fstatfs(fd, &status) != 0) return false;
  return status.f_type == OVERLAYFS_SUPER_MAGIC ||
         status.f_type == BTRFS_SUPER_MAGIC;
}

enum class Check : uint8_t { kInode, kInodeAndDevice };

bool HasDevice(const struct stat& status, const Mapping& mapping) {
  return major(status.st_dev) == mapping.device_major &&
         minor(status.st_dev) == mapping.device_minor;
}

Result<OpenedFile> Verify(Regular file, const Mapping& mapping,
                          const std::string& path, Check check) {
  const bool same_inode = file.status.st_ino == mapping.inode;
  if (mapping.inode != 0 &&
      (!same_inode ||
       (check == Check::kInodeAndDevice && !HasDevice(file.status, mapping) &&
        !HasTwoDeviceNumbers(file.place.get())))) {
    return Fail(ErrorCode::kInvalid, path + ": not the file that was mapped");
  }
  const bool is_only_one =
      HasDevice(file.status, mapping)
          ? mapping.device_major != 0 || !HasTwoDeviceNumbers(file.place.get())
          : check == Check::kInode && mapping.device_major != 0;
  auto opened = Describe(std::move(file));
  opened.is_only_one = is_only_one;
  return opened;
}

Result<OpenedFile> HoldMapFile(uint32_t pid, const Mapping& mapping,
                               FileSystems* local) {
  char path[80];
  std::snprintf(path, sizeof(path), "/proc/%u/map_files/%llx-%llx", pid,
                static_cast<unsigned long long>(mapping.start.value),
                static_cast<unsigned long long>(mapping.end.value));
  auto file = HoldRegular(AT_FDCWD, path, 0, {pid, local});
  if (!file) return Fail(std::move(file.error()));
  // The link leads to the file whatever its device number looks like.
  return Verify(std::move(*file), mapping, path, Check::kInode);
}

// A file of a process, or of none (0).
Result<OpenedFile> HoldPath(int root, const Within& within,
                            const Mapping& mapping, const std::string& path) {
  auto file = HoldBelowRoot(root, path, within);
  if (!file) return Fail(std::move(file.error()));
  const bool same_device = HasDevice(file->status, mapping);
  auto opened = Verify(std::move(*file), mapping, path, Check::kInodeAndDevice);
  // Layers of an overlay number their files alike, and it shows one device.
  const bool in_layers = mapping.device_major == 0 || !same_device;
  if (opened && within.pid != 0 && in_layers) {
    opened->mapped_build_id = ReadMappedBuildId(within.pid, mapping);
  }
  return opened;
}

// By the path as it is, then without " (deleted)".
Result<OpenedFile> HoldBelow(int root, const Within& within,
                             const Mapping& mapping) {
  auto opened = HoldPath(root, within, mapping, mapping.path);
  if (opened || !mapping.path.ends_with(kDeleted)) return opened;
  auto bare = HoldPath(
      root, within, mapping,
      mapping.path.str().substr(0, mapping.path.size() - kDeleted.size()));
  if (bare || opened.error().code() == ErrorCode::kNotFound) return bare;
  return opened;
}

Result<UniqueFd> OpenRoot(const std::string& path) {
  UniqueFd fd(::open(path.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!fd.valid()) return FailErrno(errno, path);
  return fd;
}

std::string RootOf(uint32_t thread) {
  return "/proc/" + std::to_string(thread) + "/root";
}

// 0, or why there is no way to the thread's root. Only the link is read, which
// asks no file system.
int RootError(uint32_t thread) {
  char first = 0;
  return ::readlink(RootOf(thread).c_str(), &first, 1) < 0 ? errno : 0;
}

bool HasRoot(uint32_t thread) { return RootError(thread) != ENOENT; }

// A thread of the process that has memory and a root; the first one loses
// both when it ends.
uint32_t ThreadWithRoot(uint32_t pid) {
  if (HasRoot(pid)) return pid;
  const auto threads = OtherThreads(pid);
  const auto found = std::ranges::find_if(threads, HasRoot);
  return found == threads.end() ? pid : *found;
}

// Before anything is opened: not even a link in /proc leads to a file without a
// word with some network file systems.
Status CheckDevice(uint32_t pid, const Mapping& mapping, FileSystems* local) {
  const auto is_local = [&](uint32_t thread) {
    return local->IsLocalDevice(thread, mapping.device_major,
                                mapping.device_minor);
  };
  if (local == nullptr || is_local(pid)) return {};
  const uint32_t thread = ThreadWithRoot(pid);
  if (thread != pid && is_local(thread)) return {};
  // Where there is no way to the file nobody has to be asked.
  const int error = RootError(thread);
  return FailErrno(error == 0 ? EREMOTE : error, mapping.path.str());
}

Result<OpenedFile> OpenFileIn(const Result<UniqueFd>& root,
                              const std::string& path, const Within& within) {
  if (!root) return Fail(root.error());
  auto file = HoldBelowRoot(root->get(), path, within);
  if (!file) return Fail(std::move(file.error()));
  return Opened(Describe(std::move(*file)), path);
}

}  // namespace

std::optional<FileOwner> OwnerOfCopy(const OpenedFile& file) {
  if (!file.remote || file.is_held) return std::nullopt;
  return file.owner;
}

int64_t MtimeNs(const struct stat& status) {
  return int64_t{status.st_mtim.tv_sec} * 1'000'000'000 +
         status.st_mtim.tv_nsec;
}

bool IsRemote(const Error& error) { return error.sys_errno() == EREMOTE; }

Result<OpenedFile> OpenFileOfProcess(uint32_t pid, const std::string& path,
                                     Links links, FileSystems* local) {
  const uint32_t thread = ThreadWithRoot(pid);
  return OpenFileIn(OpenRoot(RootOf(thread)), path, {thread, local, links});
}

Result<OpenedFile> OpenFileOfHost(const std::string& path, Links links,
                                  FileSystems* local) {
  return OpenFileIn(OpenRoot("/"), path, {0, local, links});
}

Result<OpenedFile> HoldMappedFile(uint32_t pid, const Mapping& mapping,
                                  FileSystems* local) {
  auto known = CheckDevice(pid, mapping, local);
  if (!known) return Fail(std::move(known.error()));
  auto mapped = HoldMapFile(pid, mapping, local);
  if (mapped || IsRemote(mapped.error())) return mapped;
  const uint32_t thread = ThreadWithRoot(pid);
  if (thread != pid) {
    mapped = HoldMapFile(thread, mapping, local);
    if (mapped || IsRemote(mapped.error())) return mapped;
  }
  const auto root = OpenRoot(RootOf(thread));
  if (!root) return Fail(root.error());
  return HoldBelow(root->get(), {thread, local}, mapping);
}

Result<OpenedFile> HoldHostFile(const Mapping& mapping, FileSystems* local) {
  const auto root = OpenRoot("/");
  if (!root) return Fail(root.error());
  return HoldBelow(root->get(), {0, local}, mapping);
}

Result<OpenedFile> HoldMappedOrHostFile(uint32_t pid, const Mapping& mapping,
                                        FileSystems* local) {
  auto mapped = HoldMappedFile(pid, mapping, local);
  if (mapped || mapping.inode == 0 ||
      mapped.error().code() != ErrorCode::kNotFound) {
    return mapped;
  }
  auto of_host = HoldHostFile(mapping, local);
  if (of_host || IsRemote(of_host.error())) return of_host;
  return mapped;
}

Result<OpenedFile> OpenMappedFile(uint32_t pid, const Mapping& mapping) {
  return Opened(HoldMappedFile(pid, mapping), mapping.path);
}

Result<OpenedFile> OpenHostFile(const Mapping& mapping) {
  return Opened(HoldHostFile(mapping), mapping.path);
}

Status OpenHeld(OpenedFile& file) {
  if (!file.is_held) return {};
  auto fd = OpenPlace(file.fd.get());
  if (!fd) return Fail(std::move(fd.error()));
  file.fd = std::move(*fd);
  file.is_held = false;
  return {};
}

}  // namespace ksym
