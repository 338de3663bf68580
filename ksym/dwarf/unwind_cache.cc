#include "ksym/dwarf/unwind_cache.h"

#include <nettle/sha2.h>

#include <array>
#include <span>
#include <utility>

#include "ksym/base/byte_writer.h"
#include "ksym/base/file.h"
#include "ksym/dwarf/unwind_table_file.h"

namespace ksym {
namespace {

constexpr std::string_view kSuffix = ".unwind";

// What smaller sections say is known sooner than a file is read.
constexpr size_t kLeastSectionBytes = 4096;

}  // namespace

Result<UnwindCache> UnwindCache::Open(std::string directory,
                                      uint64_t max_bytes) {
  auto folder =
      CacheFolder::Open(std::move(directory), std::string(kSuffix), max_bytes);
  if (!folder) return Fail(std::move(folder.error()));
  return UnwindCache(std::move(*folder));
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
  const std::string name = ToHex(key);
  const auto fd = folder_.OpenFile(name);
  if (!fd) return Fail(fd.error());
  const auto fail = [&](Error error) {
    return Fail(std::move(error).WithContext(folder_.PathOf(name)));
  };
  const auto file = MappedFile::OfDescriptor(fd->get());
  if (!file) return fail(file.error());
  auto table = DecodeUnwindTable(file->bytes(), key);
  if (!table) return fail(table.error());
  return table;
}

Status UnwindCache::Store(std::string_view key, const UnwindTable& table) {
  auto written = folder_.Store(ToHex(key), EncodeUnwindTable(table, key));
  if (written) ++counts_.written;
  counts_.removed = folder_.removed();
  return written;
}

}  // namespace ksym
