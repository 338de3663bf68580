// SPDX-License-Identifier: Apache-2.0
#include "ksym/gsym_cache.h"

#include "ksym/elf/elf_image.h"

namespace ksym {
namespace {

// The number changes when the conversion does, so that what an older version
// made is made anew.
constexpr std::string_view kSuffix = ".1.gsym";

}  // namespace

Result<GsymCache> GsymCache::Open(std::string directory, uint64_t max_bytes) {
  auto cache =
      DiskCache::Open(std::move(directory), std::string(kSuffix), max_bytes);
  if (!cache) return Fail(std::move(cache.error()));
  return GsymCache(std::move(*cache));
}

Result<GsymImage> GsymCache::Load(std::string_view build_id) const {
  const auto file = cache_.OpenFile(build_id);
  if (!file) return Fail(file.error());
  const auto fail = [&](Error error) {
    return Fail(std::move(error).WithContext(cache_.PathOf(build_id)));
  };
  auto mapped = MappedFile::OfDescriptor(file->fd.get());
  if (!mapped) return fail(std::move(mapped.error()));
  auto image = GsymImage::OfFile(std::move(*mapped));
  if (!image) return fail(std::move(image.error()));
  const std::string uuid = ToHex(image->file().uuid());
  // A GSYM file holds at most 20 bytes of a build-id.
  if (uuid.empty() || !build_id.starts_with(uuid)) {
    return fail(Error(ErrorCode::kCorrupt, "of another program"));
  }
  return image;
}

Status GsymCache::Store(std::string_view build_id,
                        std::span<const std::byte> bytes) {
  return cache_.Store(
      build_id, {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

}  // namespace ksym
