// SPDX-License-Identifier: Apache-2.0
#include "ksym/elf/dynamic_symbols.h"

#include <array>
#include <cstring>
#include <vector>

#include "ksym/base/byte_reader.h"

namespace ksym {
namespace {

// Symbols that are looked at in a bucket; linkers make some two.
constexpr uint32_t kMaxInBucket = 4096;
constexpr uint64_t kSymbolBytes = 24;

uint32_t HashOf(std::string_view name) {
  uint32_t hash = 5381;
  for (const char c : name) hash = hash * 33 + static_cast<uint8_t>(c);
  return hash;
}

}  // namespace

std::optional<DynamicSymbols> DynamicSymbols::Open(const ByteSource& source,
                                                   const ElfImage& image) {
  const ElfSection* hash = image.FindSection(".gnu.hash");
  const ElfSection* symbols = image.FindSection(".dynsym");
  const ElfSection* names = image.FindSection(".dynstr");
  if (hash == nullptr || symbols == nullptr || names == nullptr) {
    return std::nullopt;
  }
  DynamicSymbols found(source, *hash, *symbols, *names);
  found.buckets_ = found.Word(0);
  found.first_symbol_ = found.Word(4);
  found.bloom_words_ = found.Word(8);
  // A shift by more bits than the hash has is not defined.
  found.bloom_shift_ = found.Word(12) & 31u;
  if (found.buckets_ == 0 || found.bloom_words_ == 0) return std::nullopt;
  return found;
}

std::optional<DynamicSymbol> DynamicSymbols::Find(std::string_view name) const {
  const uint32_t hash = HashOf(name);
  const uint64_t bloom = Long(16 + 8 * uint64_t{hash / 64 % bloom_words_});
  const uint64_t mask =
      uint64_t{1} << hash % 64 | uint64_t{1} << (hash >> bloom_shift_) % 64;
  // Two bits of a Bloom filter say of most names that are not there that they
  // are not, before a bucket is read.
  if ((bloom & mask) != mask) return std::nullopt;
  const uint64_t table = 16 + 8 * uint64_t{bloom_words_};
  const uint64_t chains = table + 4 * uint64_t{buckets_};
  const uint32_t first = Word(table + 4 * uint64_t{hash % buckets_});
  // An empty bucket has 0, and the symbols before that one are not hashed.
  if (first < first_symbol_) return std::nullopt;
  for (uint32_t i = 0; i < kMaxInBucket; ++i) {
    const uint64_t number = uint64_t{first} + i;
    const uint32_t other = Word(chains + 4 * (number - first_symbol_));
    // The lowest bit of a chain's word is not the hash's: it marks the last
    // one.
    if ((other | 1u) == (hash | 1u)) {
      const auto symbol = Get(number, name);
      if (symbol) return symbol;
    }
    if ((other & 1u) != 0) break;
  }
  return std::nullopt;
}

bool DynamicSymbols::Read(const ElfSection& section, uint64_t offset,
                          std::span<std::byte> out) const {
  const auto end = CheckedAdd(offset, out.size());
  const auto at = CheckedAdd(section.file_offset, offset);
  return end && at && *end <= section.size &&
         source_->ReadAt(*at, out).has_value();
}

// 0 outside of the section.
uint32_t DynamicSymbols::Word(uint64_t offset) const {
  uint32_t word = 0;
  const auto bytes = std::as_writable_bytes(std::span(&word, 1));
  return Read(*hash_, offset, bytes) ? word : 0;
}

uint64_t DynamicSymbols::Long(uint64_t offset) const {
  return Word(offset) | uint64_t{Word(offset + 4)} << 32;
}

// The symbol of that number, if it has that name and is defined.
std::optional<DynamicSymbol> DynamicSymbols::Get(uint64_t number,
                                                 std::string_view name) const {
  std::array<std::byte, kSymbolBytes> bytes = {};
  if (!Read(*symbols_, number * kSymbolBytes, bytes)) return std::nullopt;
  ByteReader reader(bytes);
  const auto name_at = reader.Read<uint32_t>();
  reader.Read<uint16_t>();  // type and visibility
  const auto section = reader.Read<uint16_t>();
  const auto value = reader.Read<uint64_t>();
  const auto size = reader.Read<uint64_t>();
  std::vector<std::byte> other(name.size() + 1);
  if (section == 0 || !Read(*names_, name_at, other) ||
      std::memcmp(other.data(), name.data(), name.size()) != 0 ||
      other.back() != std::byte{0}) {
    return std::nullopt;
  }
  return DynamicSymbol{.address = {value}, .size = size};
}

bool ReadInitialBytes(const ByteSource& source, const ElfImage& image,
                      ElfAddress address, std::span<std::byte> out) {
  for (const ElfSegment& segment : image.segments()) {
    // For an address in front of the segment this wraps to more than its size.
    const uint64_t offset = address - segment.address;
    if (offset >= segment.file_size ||
        segment.file_size - offset < out.size()) {
      continue;
    }
    const auto at = CheckedAdd(segment.file_offset.value, offset);
    return at && source.ReadAt(*at, out);
  }
  return false;
}

}  // namespace ksym
