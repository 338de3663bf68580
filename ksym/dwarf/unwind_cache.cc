#include "ksym/dwarf/unwind_cache.h"

#include <nettle/sha2.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <span>
#include <system_error>
#include <utility>
#include <vector>

#include "ksym/base/byte_writer.h"
#include "ksym/base/file.h"
#include "ksym/dwarf/unwind_table_file.h"

namespace ksym {
namespace {

constexpr std::string_view kSuffix = ".unwind";
constexpr size_t kMaxFileBytes = kMaxUnwindRows * sizeof(UnwindRow) + 4096;

// What smaller sections say is known sooner than a file is read.
constexpr size_t kLeastSectionBytes = 4096;

struct CachedFile {
  std::filesystem::path path;
  uint64_t size = 0;
  std::filesystem::file_time_type used;
};

// The cache's files, also those that a writer that died left half written.
std::vector<CachedFile> ListFiles(const std::string& directory) {
  std::vector<CachedFile> files;
  std::error_code error;
  std::filesystem::directory_iterator entry(directory, error);
  const std::filesystem::directory_iterator end;
  for (; !error && entry != end; entry.increment(error)) {
    const auto name = entry->path().filename().string();
    std::error_code gone;
    if (name.find(kSuffix) == std::string::npos ||
        !entry->is_regular_file(gone)) {
      continue;
    }
    CachedFile file;
    file.path = entry->path();
    file.size = entry->file_size(gone);
    if (!gone) file.used = entry->last_write_time(gone);
    if (!gone) files.push_back(std::move(file));
  }
  return files;
}

}  // namespace

Result<UnwindCache> UnwindCache::Open(std::string directory,
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
  if (status.st_uid != ::geteuid() ||
      (status.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
    return Fail(ErrorCode::kPermission,
                directory +
                    ": must belong to this user, and nobody else may write "
                    "to it");
  }
  return UnwindCache(std::move(directory), max_bytes);
}

std::string UnwindCache::PathOf(std::string_view key) const {
  std::string path = directory_;
  path += '/';
  path += ToHex(key);
  path += kSuffix;
  return path;
}

std::string UnwindCache::KeyOf(const CallFrameSection& section,
                               const CodeExtent& code) {
  ByteWriter about;
  about.Write(kUnwindTableVersion);
  about.Write(static_cast<uint8_t>(section.format));
  about.Write(static_cast<uint8_t>(section.ends_with_zero ? 1 : 0));
  about.Write(section.address.value);
  about.Write(code.base.value);
  about.Write(code.size);
  sha256_ctx state;
  sha256_init(&state);
  const auto add = [&state](std::span<const std::byte> bytes) {
    sha256_update(&state, bytes.size(),
                  reinterpret_cast<const uint8_t*>(bytes.data()));
  };
  add(about.bytes());
  add(section.bytes);
  std::array<uint8_t, SHA256_DIGEST_SIZE> key{};
  sha256_digest(&state, key.size(), key.data());
  return {key.begin(), key.end()};
}

Result<UnwindTable> UnwindCache::LoadOrBuild(const ByteSource& source,
                                             const ElfImage& image) {
  return BuildUnwindTable(
      source, image,
      [this](const CallFrameSection& section, const CodeExtent& code) {
        return LoadOrBuildSection(section, code);
      });
}

Result<UnwindTable> UnwindCache::LoadOrBuildSection(
    const CallFrameSection& section, const CodeExtent& code) {
  if (section.bytes.size() < kLeastSectionBytes) {
    return BuildSectionTable(section, code);
  }
  const std::string key = KeyOf(section, code);
  auto cached = Load(key);
  if (cached) {
    ++counts_.read;
    return cached;
  }
  if (cached.error().code() == ErrorCode::kCorrupt) ++counts_.corrupt;
  auto table = BuildSectionTable(section, code);
  if (!table) return table;
  ++counts_.built;
  const bool is_kept = !table->rows.empty() && Store(key, *table);
  if (!is_kept) ++counts_.not_written;
  return table;
}

Result<UnwindTable> UnwindCache::Load(std::string_view key) {
  const std::string path = PathOf(key);
  const auto fd = OpenForRead(path);
  if (!fd) return Fail(fd.error());
  const auto bytes = ReadAll(fd->get(), kMaxFileBytes);
  if (!bytes) return Fail(Error(bytes.error()).WithContext(path));
  auto table = DecodeUnwindTable(std::as_bytes(std::span(*bytes)), key);
  if (!table) return Fail(Error(table.error()).WithContext(path));
  // Only the order of removal depends on it.
  (void)::futimens(fd->get(), nullptr);
  return table;
}

Status UnwindCache::Store(std::string_view key, const UnwindTable& table) {
  const std::string bytes = EncodeUnwindTable(table, key);
  const std::string path = PathOf(key);
  if (bytes.size() > max_bytes_) {
    return Fail(ErrorCode::kLimit,
                path + ": " + std::to_string(bytes.size()) +
                    " bytes are more than the cache may have");
  }
  MakeRoom(bytes.size());
  auto file = AtomicFile::Create(path);
  if (!file) return Fail(file.error());
  auto written = file->Write(bytes);
  if (written) written = file->Commit();
  if (written) ++counts_.written;
  return written;
}

void UnwindCache::MakeRoom(uint64_t bytes) {
  auto files = ListFiles(directory_);
  uint64_t total = bytes;
  for (const CachedFile& file : files) total += file.size;
  if (total <= max_bytes_) return;
  std::sort(
      files.begin(), files.end(),
      [](const CachedFile& a, const CachedFile& b) { return a.used < b.used; });
  for (const CachedFile& file : files) {
    if (total <= max_bytes_) break;
    std::error_code error;
    if (!std::filesystem::remove(file.path, error)) continue;
    total -= file.size;
    ++counts_.removed;
  }
}

}  // namespace ksym
