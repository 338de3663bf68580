#include "ksym/process/mapped_file.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <unistd.h>

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

// A regular file, open for reading, and what it was before it was opened.
struct Regular {
  UniqueFd fd;
  struct stat status = {};
};

// Looks at the file before it opens it: opening a device has effects of its
// own, and the path is a profiled process's choice.
Result<Regular> OpenRegular(int directory, const std::string& path,
                            uint64_t resolve) {
  const auto place =
      OpenAt(directory, path,
             {.flags = O_PATH | O_CLOEXEC, .mode = 0, .resolve = resolve});
  if (!place) return Fail(place.error());
  Regular file;
  if (::fstat(place->get(), &file.status) != 0) return FailErrno(errno, path);
  if (!S_ISREG(file.status.st_mode)) {
    return Fail(ErrorCode::kUnsupported, path + ": not a regular file");
  }
  auto fd = OpenAt(AT_FDCWD, "/proc/self/fd/" + std::to_string(place->get()),
                   {.flags = O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC,
                    .mode = 0,
                    .resolve = 0});
  if (!fd) return Fail(std::move(fd.error()).WithContext(path));
  file.fd = std::move(*fd);
  return file;
}

OpenedFile Describe(Regular file) {
  OpenedFile opened;
  opened.fd = std::move(file.fd);
  opened.size = static_cast<uint64_t>(file.status.st_size);
  opened.mtime_ns = MtimeNs(file.status);
  return opened;
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

Result<OpenedFile> Verify(Regular file, const Mapping& mapping,
                          const std::string& path, Check check) {
  const dev_t device = file.status.st_dev;
  const bool same_device = major(device) == mapping.device_major &&
                           minor(device) == mapping.device_minor;
  const bool same_inode = file.status.st_ino == mapping.inode;
  if (mapping.inode != 0 &&
      (!same_inode || (check == Check::kInodeAndDevice && !same_device &&
                       !HasTwoDeviceNumbers(file.fd.get())))) {
    return Fail(ErrorCode::kInvalid, path + ": not the file that was mapped");
  }
  return Describe(std::move(file));
}

Result<OpenedFile> OpenMapFile(uint32_t pid, const Mapping& mapping) {
  char path[80];
  std::snprintf(path, sizeof(path), "/proc/%u/map_files/%llx-%llx", pid,
                static_cast<unsigned long long>(mapping.start.value),
                static_cast<unsigned long long>(mapping.end.value));
  auto file = OpenRegular(AT_FDCWD, path, 0);
  if (!file) return Fail(std::move(file.error()));
  // The link leads to the file whatever its device number looks like.
  return Verify(std::move(*file), mapping, path, Check::kInode);
}

Result<OpenedFile> OpenPath(int root, const Mapping& mapping,
                            const std::string& path) {
  auto file = OpenRegular(root, path, RESOLVE_IN_ROOT);
  if (!file) return Fail(std::move(file.error()));
  return Verify(std::move(*file), mapping, path, Check::kInodeAndDevice);
}

// By the path as it is, then without " (deleted)".
Result<OpenedFile> OpenBelow(int root, const Mapping& mapping) {
  auto opened = OpenPath(root, mapping, mapping.path);
  if (opened || !mapping.path.ends_with(kDeleted)) return opened;
  auto bare =
      OpenPath(root, mapping,
               mapping.path.substr(0, mapping.path.size() - kDeleted.size()));
  if (bare || opened.error().code() == ErrorCode::kNotFound) return bare;
  return opened;
}

Result<UniqueFd> OpenRoot(const std::string& path) {
  UniqueFd fd(::open(path.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!fd.valid()) return FailErrno(errno, path);
  return fd;
}

Result<OpenedFile> OpenFileIn(const std::string& root_path,
                              const std::string& path) {
  const auto root = OpenRoot(root_path);
  if (!root) return Fail(root.error());
  auto file = OpenRegular(root->get(), path, RESOLVE_IN_ROOT);
  if (!file) return Fail(std::move(file.error()));
  return Describe(std::move(*file));
}

}  // namespace

int64_t MtimeNs(const struct stat& status) {
  return int64_t{status.st_mtim.tv_sec} * 1'000'000'000 +
         status.st_mtim.tv_nsec;
}

Result<OpenedFile> OpenFileOfProcess(uint32_t pid, const std::string& path) {
  return OpenFileIn("/proc/" + std::to_string(pid) + "/root", path);
}

Result<OpenedFile> OpenFileOfHost(const std::string& path) {
  return OpenFileIn("/", path);
}

Result<OpenedFile> OpenMappedFile(uint32_t pid, const Mapping& mapping) {
  auto mapped = OpenMapFile(pid, mapping);
  if (mapped) return mapped;
  const auto root = OpenRoot("/proc/" + std::to_string(pid) + "/root");
  if (!root) return Fail(root.error());
  return OpenBelow(root->get(), mapping);
}

Result<OpenedFile> OpenHostFile(const Mapping& mapping) {
  const auto root = OpenRoot("/");
  if (!root) return Fail(root.error());
  return OpenBelow(root->get(), mapping);
}

Result<UniqueFd> OpenInRoot(int root, const std::string& path, Links links) {
  const uint64_t refused = links == Links::kRefuse ? RESOLVE_NO_SYMLINKS : 0;
  auto file = OpenRegular(root, path, RESOLVE_IN_ROOT | refused);
  if (!file) return Fail(std::move(file.error()));
  return std::move(file->fd);
}

}  // namespace ksym
