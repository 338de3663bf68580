// SPDX-License-Identifier: Apache-2.0
#include "ksym/base/disk_cache.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

#include "ksym/base/file.h"

namespace ksym {
namespace {

struct ListedFile {
  std::filesystem::path path;
  uint64_t size = 0;
  std::filesystem::file_time_type used;
};

// The files of one kind, also those that a writer that died left half written.
std::vector<ListedFile> ListFiles(const std::string& directory,
                                  const std::string& suffix) {
  std::vector<ListedFile> files;
  std::error_code error;
  std::filesystem::directory_iterator entry(directory, error);
  const std::filesystem::directory_iterator end;
  for (; !error && entry != end; entry.increment(error)) {
    const auto name = entry->path().filename().string();
    std::error_code gone;
    if (name.find(suffix) == std::string::npos ||
        !entry->is_regular_file(gone)) {
      continue;
    }
    ListedFile file;
    file.path = entry->path();
    file.size = entry->file_size(gone);
    if (!gone) file.used = entry->last_write_time(gone);
    if (!gone) files.push_back(std::move(file));
  }
  return files;
}

// Only the order of removal depends on the time of a file's last use, and
// writing it down costs more than reading a small file.
constexpr time_t kNoteUseSeconds = 60;

void NoteUse(int fd, const struct stat& status) {
  timespec now = {};
  ::clock_gettime(CLOCK_REALTIME_COARSE, &now);
  const time_t age = now.tv_sec - status.st_mtim.tv_sec;
  if (age < 0 || age >= kNoteUseSeconds) (void)::futimens(fd, nullptr);
}

bool IsOursAlone(const struct stat& status) {
  return status.st_uid == ::geteuid() &&
         (status.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

}  // namespace

Result<DiskCache> DiskCache::Open(std::string directory, std::string suffix,
                                  uint64_t max_bytes) {
  if (::mkdir(directory.c_str(), 0700) != 0 && errno != EEXIST) {
    return FailErrno(errno, directory);
  }
  struct stat status = {};
  if (::stat(directory.c_str(), &status) != 0) {
    return FailErrno(errno, directory);
  }
  if (!S_ISDIR(status.st_mode)) {
    return Fail(ErrorCode::kInvalid, directory + ": not a directory");
  }
  if (!IsOursAlone(status)) {
    return Fail(ErrorCode::kPermission,
                directory +
                    ": must belong to this user, and nobody else may write "
                    "to it");
  }
  return DiskCache(std::move(directory), std::move(suffix), max_bytes);
}

std::string DiskCache::PathOf(std::string_view name) const {
  std::string path = directory_;
  path += '/';
  path += name;
  path += suffix_;
  return path;
}

Result<DiskCache::CachedFile> DiskCache::OpenFile(std::string_view name) const {
  const std::string path = PathOf(name);
  UniqueFd fd(
      ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW));
  if (!fd.valid()) return FailErrno(errno, path);
  struct stat status = {};
  if (::fstat(fd.get(), &status) != 0) return FailErrno(errno, path);
  // Although the directory is ours alone: it may not always have been.
  if (!S_ISREG(status.st_mode) || !IsOursAlone(status)) {
    return Fail(ErrorCode::kPermission,
                path +
                    ": must be a regular file of this user that nobody "
                    "else may write to");
  }
  NoteUse(fd.get(), status);
  return CachedFile{std::move(fd), static_cast<uint64_t>(status.st_size)};
}

Status DiskCache::Store(std::string_view name, std::string_view bytes) {
  const std::string path = PathOf(name);
  if (bytes.size() > max_bytes_) {
    return Fail(ErrorCode::kLimit,
                path + ": " + std::to_string(bytes.size()) +
                    " bytes are more than the cache may have");
  }
  // First, so that the files never have more bytes than the bound together.
  MakeRoom(bytes.size());
  auto file = AtomicFile::Create(path);
  if (!file) return Fail(file.error());
  // Whatever the umask is, and whatever was there before.
  if (::fchmod(file->fd(), 0600) != 0) return FailErrno(errno, path);
  auto written = file->Write(bytes);
  if (written) written = file->Commit();
  return written;
}

void DiskCache::MakeRoom(uint64_t bytes) {
  auto files = ListFiles(directory_, suffix_);
  uint64_t total = bytes;
  for (const ListedFile& file : files) total += file.size;
  if (total <= max_bytes_) return;
  std::sort(
      files.begin(), files.end(),
      [](const ListedFile& a, const ListedFile& b) { return a.used < b.used; });
  for (const ListedFile& file : files) {
    if (total <= max_bytes_) break;
    std::error_code error;
    if (!std::filesystem::remove(file.path, error)) continue;
    total -= file.size;
    ++removed_;
  }
}

}  // namespace ksym
