// SPDX-License-Identifier: Apache-2.0
#include "ksym/unwind/unwind_cache.h"

#include <nettle/sha2.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include "ksym/base/byte_writer.h"
#include "ksym/base/file.h"
#include "ksym/unwind/unwind_table_file.h"

namespace ksym {
namespace {

constexpr std::string_view kSuffix = ".unwind";

// What smaller sections say is known sooner than a file is read.
constexpr size_t kMinSectionBytes = 4096;

// Smaller files are read, as mapping takes longer.
constexpr uint64_t kMinMappedBytes = uint64_t{256} << 10;

// Tables that are remembered: of the files that containers have copies of.
constexpr size_t kRecentTables = 16;
constexpr size_t kMaxRecentRows = 16384;

Result<UnwindTable> DecodeMapped(int fd, std::string_view key) {
  const auto file = MappedFile::OfDescriptor(fd);
  if (!file) return Fail(file.error());
  return DecodeUnwindTable(file->bytes(), key);
}

Result<UnwindTable> DecodeRead(int fd, uint64_t size, std::string_view key) {
  std::vector<std::byte> bytes(static_cast<size_t>(size));
  const auto read = ReadExactlyAt(fd, 0, bytes);
  if (!read) return Fail(read.error());
  return DecodeUnwindTable(bytes, key);
}

}  // namespace

Result<UnwindCache> UnwindCache::Open(std::string directory,
                                      uint64_t max_bytes) {
  auto cache =
      DiskCache::Open(std::move(directory), std::string(kSuffix), max_bytes);
  if (!cache) return Fail(std::move(cache.error()));
  return UnwindCache(std::move(*cache));
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
  if (section.bytes.size() < kMinSectionBytes) {
    return BuildSectionTable(section, code);
  }
  const std::string key = KeyOf(section, code);
  if (const UnwindTable* recent = FindRecent(key)) return *recent;
  auto cached = Load(key);
  if (cached) {
    ++counts_.read;
    Remember(key, *cached);
    return cached;
  }
  if (cached.error().code() == ErrorCode::kCorrupt) ++counts_.corrupt;
  auto table = BuildSectionTable(section, code);
  if (!table) return table;
  ++counts_.built;
  // A table that cannot be kept is good all the same.
  const bool is_kept = !table->rows.empty() && Store(key, *table);
  if (!is_kept) ++counts_.not_written;
  return table;
}

const UnwindTable* UnwindCache::FindRecent(const std::string& key) {
  const auto found = std::ranges::find(recent_, key, &Recent::first);
  if (found == recent_.end()) return nullptr;
  recent_.splice(recent_.begin(), recent_, found);
  return &recent_.front().second;
}

void UnwindCache::Remember(const std::string& key, const UnwindTable& table) {
  if (table.rows.size() > kMaxRecentRows) return;
  recent_.emplace_front(key, table);
  if (recent_.size() > kRecentTables) recent_.pop_back();
}

Result<UnwindTable> UnwindCache::Load(std::string_view key) {
  const std::string name = ToHex(key);
  const auto file = cache_.OpenFile(name);
  if (!file) return Fail(file.error());
  auto table = file->size < kMinMappedBytes
                   ? DecodeRead(file->fd.get(), file->size, key)
                   : DecodeMapped(file->fd.get(), key);
  if (table) return table;
  return Fail(std::move(table.error()).WithContext(cache_.PathOf(name)));
}

Status UnwindCache::Store(std::string_view key, const UnwindTable& table) {
  auto written = cache_.Store(ToHex(key), EncodeUnwindTable(table, key));
  if (written) ++counts_.written;
  counts_.removed = cache_.removed();
  return written;
}

}  // namespace ksym
