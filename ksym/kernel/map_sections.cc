// SPDX-License-Identifier: Apache-2.0
#include "ksym/kernel/map_sections.h"

#include <algorithm>

#include "ksym/base/byte_reader.h"

namespace ksym {

uint64_t MapChecksum(std::span<const std::byte> bytes) {
  constexpr uint64_t kPrime = 0x100000001b3;
  constexpr size_t kField = offsetof(MapHeader, checksum);
  uint64_t hash = 0xcbf29ce484222325;
  for (size_t at = 0; at < bytes.size(); at += sizeof(uint64_t)) {
    uint64_t word = 0;
    if (at != kField) {
      std::memcpy(&word, bytes.data() + at,
                  std::min(sizeof word, bytes.size() - at));
    }
    hash = (hash ^ word) * kPrime;
  }
  return hash;
}

Result<MapSections> MapSections::Parse(std::span<const std::byte> bytes) {
  MapSections sections;
  MapHeader& header = sections.header_;
  if (bytes.size() < sizeof header)
    return DamagedMap("shorter than its header");
  std::memcpy(&header, bytes.data(), sizeof header);
  if (header.magic != kMapMagic) return DamagedMap("wrong magic");
  if (header.byte_order != kMapByteOrder) {
    return Fail(ErrorCode::kUnsupported,
                "compact symbol map: made on a machine of other byte order");
  }
  if (header.version != kMapVersion) {
    return Fail(ErrorCode::kUnsupported,
                "compact symbol map: version " +
                    std::to_string(header.version) + ", this program reads " +
                    std::to_string(kMapVersion) + "; generate it anew");
  }
  if (header.header_bytes != sizeof header) return DamagedMap("header size");
  if (header.file_bytes != bytes.size()) {
    return DamagedMap("not as long as its header says");
  }
  if (header.checksum != MapChecksum(bytes))
    return DamagedMap("wrong checksum");
  sections.bytes_ = bytes;
  for (size_t i = 0; i < kMapSectionCount; ++i) {
    const MapSection s = header.sections[i];
    const auto end = CheckedAdd(s.offset, s.size);
    if (s.offset < sizeof(MapHeader) || !end || *end > bytes.size()) {
      return DamagedMap("a section outside of the file");
    }
    sections.pointers_[i] = bytes.data() + s.offset;
  }
  const size_t block_bytes = sections.section(MapSectionId::kBlocks).size();
  if (block_bytes > kBitStreamPadding) {
    sections.entry_bits_ = (block_bytes - kBitStreamPadding) * 8;
  }
  // A token takes one bit at least, so this bounds what a name can be, and
  // what a hostile header makes a lookup allocate.
  constexpr uint64_t kMaxPerBit = kMaxTokenText + 2;
  if (header.max_name_bytes > bytes.size() * 8 * kMaxPerBit) {
    return DamagedMap("names longer than the file can hold");
  }
  return sections;
}

}  // namespace ksym
