// SPDX-License-Identifier: Apache-2.0
#include "daemon/capture/btf_cache.h"

#include <nettle/sha2.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <optional>
#include <string_view>
#include <utility>

#include "daemon/capture/minimal_btf.h"
#include "ksym/base/disk_cache.h"
#include "ksym/base/file.h"
#include "ksym/elf/build_id_note.h"
#include "ksym/elf/elf_image.h"

namespace profd {
namespace {

using ksym::Result;

// Part of each key: grows when what is taken out of a BTF changes.
constexpr std::string_view kVersion = "ksym minimal BTF 3";
constexpr std::string_view kSuffix = ".btf";
// A file has some 1.5 KB, and there is one for each kernel and each object.
constexpr uint64_t kMaxCacheBytes = 64 << 10;
constexpr uint64_t kMaxFileBytes = 16 << 10;

using Digest = std::array<uint8_t, SHA256_DIGEST_SIZE>;

// Lengths are hashed as well: what is in one part cannot pass for another.
Digest DigestOf(std::initializer_list<std::span<const std::byte>> parts) {
  sha256_ctx state;
  sha256_init(&state);
  for (const auto part : parts) {
    const uint64_t size = part.size();
    sha256_update(&state, sizeof(size),
                  reinterpret_cast<const uint8_t*>(&size));
    sha256_update(&state, part.size(),
                  reinterpret_cast<const uint8_t*>(part.data()));
  }
  Digest digest = {};
  sha256_digest(&state, digest.size(), digest.data());
  return digest;
}

std::span<const std::byte> BytesOf(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

// A file is the digest of its key and its bytes, and then these.
std::optional<std::vector<std::byte>> Load(const ksym::DiskCache& cache,
                                           const std::string& key) {
  const auto file = cache.OpenFile(key);
  if (!file || file->size > kMaxFileBytes || file->size < sizeof(Digest)) {
    return std::nullopt;
  }
  std::vector<std::byte> bytes(static_cast<size_t>(file->size));
  if (!ksym::ReadExactlyAt(file->fd.get(), 0, bytes)) return std::nullopt;
  Digest digest = {};
  std::memcpy(digest.data(), bytes.data(), digest.size());
  bytes.erase(bytes.begin(), bytes.begin() + sizeof(Digest));
  // Wrong offsets would load as well as right ones: nothing later on would
  // notice.
  if (digest != DigestOf({BytesOf(key), bytes})) return std::nullopt;
  return bytes;
}

void Store(ksym::DiskCache& cache, const std::string& key,
           std::span<const std::byte> bytes) {
  const Digest digest = DigestOf({BytesOf(key), bytes});
  std::string file(reinterpret_cast<const char*>(digest.data()), digest.size());
  file.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  // Without room it is made anew by the next start.
  static_cast<void>(cache.Store(key, file));
}

}  // namespace

std::string RunningKernelBuildId() {
  constexpr size_t kMaxNotes = 1 << 16;
  const auto notes = ksym::ReadFile("/sys/kernel/notes", kMaxNotes);
  return notes ? ksym::FindBuildIdNote(*notes) : std::string();
}

Result<std::vector<std::byte>> CachedKernelBtf(const std::string& directory,
                                               const BtfWanted& wanted) {
  const auto make = [&] {
    return MinimalKernelBtf(StructsOfObject(wanted.object_btf));
  };
  if (directory.empty() || wanted.kernel_build_id.empty()) return make();
  auto cache =
      ksym::DiskCache::Open(directory, std::string(kSuffix), kMaxCacheBytes);
  if (!cache) return make();
  const Digest digest = DigestOf(
      {BytesOf(kVersion), BytesOf(wanted.kernel_build_id), wanted.object_btf});
  const std::string key = ksym::ToHex(
      {reinterpret_cast<const char*>(digest.data()), digest.size()});
  if (auto kept = Load(*cache, key)) return std::move(*kept);
  auto made = make();
  if (made) Store(*cache, key, *made);
  return made;
}

}  // namespace profd
