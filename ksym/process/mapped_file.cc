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
};

Result<Regular> HoldRegular(int directory, const std::string& path,
                            uint64_t resolve) {
  auto place =
      OpenAt(directory, path,
             {.flags = O_PATH | O_CLOEXEC, .mode = 0, .resolve = resolve});
  if (!place) return Fail(place.error());
  Regular file = {.place = std::move(*place)};
  if (::fstat(file.place.get(), &file.status) != 0) {
    return FailErrno(errno, path);
  }
  if (!S_ISREG(file.status.st_mode)) {
    return Fail(ErrorCode::kUnsupported, path + ": not a regular file");
  }
  return file;
}

Result<UniqueFd> OpenPlace(int place) {
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
  return Describe(std::move(file));
}

Result<OpenedFile> HoldMapFile(uint32_t pid, const Mapping& mapping) {
  char path[80];
  std::snprintf(path, sizeof(path), "/proc/%u/map_files/%llx-%llx", pid,
                static_cast<unsigned long long>(mapping.start.value),
                static_cast<unsigned long long>(mapping.end.value));
  auto file = HoldRegular(AT_FDCWD, path, 0);
  if (!file) return Fail(std::move(file.error()));
  // The link leads to the file whatever its device number looks like.
  return Verify(std::move(*file), mapping, path, Check::kInode);
}

// A file of a process, or of none (0).
Result<OpenedFile> HoldPath(int root, uint32_t thread, const Mapping& mapping,
                            const std::string& path) {
  auto file = HoldRegular(root, path, RESOLVE_IN_ROOT);
  if (!file) return Fail(std::move(file.error()));
  const bool same_device = HasDevice(file->status, mapping);
  auto opened = Verify(std::move(*file), mapping, path, Check::kInodeAndDevice);
  // Layers of an overlay number their files alike, and it shows one device.
  const bool in_layers = mapping.device_major == 0 || !same_device;
  if (opened && thread != 0 && in_layers) {
    opened->mapped_build_id = ReadMappedBuildId(thread, mapping);
  }
  return opened;
}

// By the path as it is, then without " (deleted)".
Result<OpenedFile> HoldBelow(int root, uint32_t thread,
                             const Mapping& mapping) {
  auto opened = HoldPath(root, thread, mapping, mapping.path);
  if (opened || !mapping.path.ends_with(kDeleted)) return opened;
  auto bare = HoldPath(
      root, thread, mapping,
      mapping.path.str().substr(0, mapping.path.size() - kDeleted.size()));
  if (bare || opened.error().code() == ErrorCode::kNotFound) return bare;
  return opened;
}

std::string RootOf(uint32_t thread) {
  return "/proc/" + std::to_string(thread) + "/root";
}

bool HasRoot(uint32_t thread) {
  return ::faccessat(AT_FDCWD, RootOf(thread).c_str(), F_OK, AT_EACCESS) == 0 ||
         errno != ENOENT;
}

// A thread of the process that has memory and a root; the first one loses
// both when it ends.
uint32_t ThreadWithRoot(uint32_t pid) {
  if (HasRoot(pid)) return pid;
  const auto threads = OtherThreads(pid);
  const auto found = std::ranges::find_if(threads, HasRoot);
  return found == threads.end() ? pid : *found;
}

Result<OpenedFile> OpenFileIn(const Result<UniqueFd>& root,
                              const std::string& path) {
  if (!root) return Fail(root.error());
  auto file = HoldRegular(root->get(), path, RESOLVE_IN_ROOT);
  if (!file) return Fail(std::move(file.error()));
  return Opened(Describe(std::move(*file)), path);
}

}  // namespace

int64_t MtimeNs(const struct stat& status) {
  return int64_t{status.st_mtim.tv_sec} * 1'000'000'000 +
         status.st_mtim.tv_nsec;
}

Result<OpenedFile> OpenFileOfProcess(uint32_t pid, const std::string& path) {
  return OpenFileIn(OpenRootOf(pid), path);
}

Result<OpenedFile> OpenFileOfHost(const std::string& path) {
  return OpenFileIn(OpenRoot("/"), path);
}

Result<OpenedFile> HoldMappedFile(uint32_t pid, const Mapping& mapping) {
  auto mapped = HoldMapFile(pid, mapping);
  if (mapped) return mapped;
  const uint32_t thread = ThreadWithRoot(pid);
  if (thread != pid) {
    mapped = HoldMapFile(thread, mapping);
    if (mapped) return mapped;
  }
  const auto root = OpenRoot(RootOf(thread));
  if (!root) return Fail(root.error());
  return HoldBelow(root->get(), thread, mapping);
}

Result<OpenedFile> HoldHostFile(const Mapping& mapping) {
  const auto root = OpenRoot("/");
  if (!root) return Fail(root.error());
  return HoldBelow(root->get(), 0, mapping);
}

Result<OpenedFile> HoldMappedOrHostFile(uint32_t pid, const Mapping& mapping) {
  auto mapped = HoldMappedFile(pid, mapping);
  if (mapped || mapping.inode == 0 ||
      mapped.error().code() != ErrorCode::kNotFound) {
    return mapped;
  }
  auto of_host = HoldHostFile(mapping);
  return of_host ? std::move(of_host) : std::move(mapped);
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

Result<UniqueFd> OpenRoot(const std::string& path) {
  UniqueFd fd(::open(path.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!fd.valid()) return FailErrno(errno, path);
  return fd;
}

Result<UniqueFd> OpenRootOf(uint32_t pid) {
  return OpenRoot(RootOf(ThreadWithRoot(pid)));
}

Result<UniqueFd> OpenInRoot(int root, const std::string& path, Links links) {
  const uint64_t refused = links == Links::kRefuse ? RESOLVE_NO_SYMLINKS : 0;
  auto file = HoldRegular(root, path, RESOLVE_IN_ROOT | refused);
  if (!file) return Fail(std::move(file.error()));
  auto fd = OpenPlace(file->place.get());
  if (!fd) return Fail(std::move(fd.error()).WithContext(path));
  return fd;
}

}  // namespace ksym
