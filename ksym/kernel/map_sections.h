// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>

#include "ksym/base/result.h"
#include "ksym/kernel/bit_stream.h"
#include "ksym/kernel/map_format.h"

namespace ksym {

// The header and the sections of a compact map. Borrows the bytes; a value.
class MapSections {
 public:
  // Checks header, checksum and every section's bounds, not what is in them.
  // kUnsupported for a map of another version or byte order, else kCorrupt.
  // O(bytes).
  static Result<MapSections> Parse(std::span<const std::byte> bytes);

  const MapHeader& header() const { return header_; }
  std::span<const std::byte> section(MapSectionId id) const {
    const MapSection s = header_.sections[static_cast<size_t>(id)];
    return bytes_.subspan(s.offset, s.size);
  }
  // Where the section begins.
  const std::byte* At(MapSectionId id) const {
    return pointers_[static_cast<size_t>(id)];
  }
  // Whole values that the section has room for.
  template <typename T>
  size_t CountOf(MapSectionId id) const {
    return section(id).size() / sizeof(T);
  }
  // Not checked against the section's end.
  template <typename T>
  T Load(MapSectionId id, size_t index) const {
    T value;
    std::memcpy(&value, At(id) + index * sizeof(T), sizeof(T));
    return value;
  }
  uint32_t block_count() const {
    return header_.entry_count / kBlockEntries +
           (header_.entry_count % kBlockEntries != 0 ? 1 : 0);
  }
  // The bit of kBlocks that the block's heads lie on both sides of.
  uint64_t BlockBit(uint32_t block) const {
    const uint64_t whole =
        Load<uint32_t>(MapSectionId::kWholeOffsets, block / kBlocksPerOffset);
    const uint64_t fine =
        header_.fine_offset_bytes == sizeof(uint16_t)
            ? Load<uint16_t>(MapSectionId::kFineOffsets, block)
            : Load<uint32_t>(MapSectionId::kFineOffsets, block);
    return (whole + fine) * 8;
  }
  // Valid bits of kBlocks.
  uint64_t entry_bits() const { return entry_bits_; }

 private:
  std::span<const std::byte> bytes_;
  std::array<const std::byte*, kMapSectionCount> pointers_ = {};
  MapHeader header_ = {};
  uint64_t entry_bits_ = 0;
};

// kCorrupt, with what is damaged.
inline std::unexpected<Error> DamagedMap(const char* what) {
  return Fail(ErrorCode::kCorrupt, std::string("compact symbol map: ") + what);
}

}  // namespace ksym
