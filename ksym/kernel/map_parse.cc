// SPDX-License-Identifier: Apache-2.0
// The checks that make decoding a compact map safe: everything that MapTables
// follows as an index is in range after them.

#include <algorithm>
#include <cstddef>
#include <string>

#include "ksym/base/byte_reader.h"
#include "ksym/kernel/map_tables.h"

namespace ksym {
namespace {

std::unexpected<Error> Damaged(const char* what) {
  return Fail(ErrorCode::kCorrupt, std::string("compact symbol map: ") + what);
}

}  // namespace

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

Result<MapTables> MapTables::Parse(std::span<const std::byte> bytes) {
  MapTables tables;
  MapHeader& header = tables.header_;
  if (bytes.size() < sizeof header) return Damaged("shorter than its header");
  std::memcpy(&header, bytes.data(), sizeof header);
  if (header.magic != kMapMagic) return Damaged("wrong magic");
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
  if (header.header_bytes != sizeof header) return Damaged("header size");
  if (header.file_bytes != bytes.size()) {
    return Damaged("not as long as its header says");
  }
  if (header.checksum != MapChecksum(bytes)) return Damaged("wrong checksum");
  tables.bytes_ = bytes;
  if (auto ok = tables.ParseSections(); !ok) return Fail(ok.error());
  if (header.entry_count == 0) return tables;
  if (auto ok = tables.ParseCodes(); !ok) return Fail(ok.error());
  if (auto ok = tables.CheckBlocks(); !ok) return Fail(ok.error());
  for (const auto check :
       {&MapTables::CheckSegments, &MapTables::CheckRuns,
        &MapTables::CheckModules, &MapTables::CheckClasses}) {
    if (auto ok = (tables.*check)(); !ok) return Fail(ok.error());
  }
  tables.MakeTokenItems();
  tables.MakeRunHints();
  tables.MakeStartSamples();
  return tables;
}

Status MapTables::ParseSections() {
  for (size_t i = 0; i < kMapSectionCount; ++i) {
    const MapSection s = header_.sections[i];
    const auto end = CheckedAdd(s.offset, s.size);
    if (s.offset < sizeof(MapHeader) || !end || *end > bytes_.size()) {
      return Damaged("a section outside of the file");
    }
    pointers_[i] = bytes_.data() + s.offset;
  }
  block_count_ = header_.entry_count / kBlockEntries +
                 (header_.entry_count % kBlockEntries != 0 ? 1 : 0);
  segment_count_ =
      static_cast<uint32_t>(CountOf<MapSegment>(MapSectionId::kSegments));
  // A token takes one bit at least, so this bounds what a name can be, and
  // what a hostile header makes a lookup allocate.
  constexpr uint64_t kMaxPerBit = kMaxTokenText + 2;
  if (header_.max_name_bytes > bytes_.size() * 8 * kMaxPerBit) {
    return Damaged("names longer than the file can hold");
  }
  return {};
}

Status MapTables::ParseCodes() {
  auto tokens = PrefixDecoder::Make(header_.token_lengths);
  auto entries = PrefixDecoder::Make(header_.entry_lengths);
  auto names =
      PrefixDecoder::Make(header_.name_lengths, BitOrder::kLowestFirst);
  if (!tokens || !entries || !names) {
    return Damaged("a prefix code is not complete");
  }
  token_code_ = *tokens;
  entry_code_ = *entries;
  name_code_ = *names;
  if (entry_code_.symbol_count() >
          CountOf<uint16_t>(MapSectionId::kEntryValues) ||
      name_code_.symbol_count() >
          CountOf<uint16_t>(MapSectionId::kNameValues)) {
    return Damaged("a prefix code with too few values");
  }
  return {};
}

Status MapTables::CheckBlocks() {
  const size_t fine_bytes = header_.fine_offset_bytes;
  if (fine_bytes != sizeof(uint16_t) && fine_bytes != sizeof(uint32_t)) {
    return Damaged("size of the block offsets");
  }
  const size_t whole_count =
      (size_t{block_count_} + kBlocksPerOffset - 1) / kBlocksPerOffset;
  if (CountOf<uint32_t>(MapSectionId::kBlockStarts) < block_count_ ||
      CountOf<uint32_t>(MapSectionId::kWholeOffsets) < whole_count ||
      section(MapSectionId::kFineOffsets).size() / fine_bytes < block_count_ ||
      section(MapSectionId::kBlocks).size() < kBitStreamPadding) {
    return Damaged("a section of the blocks is too short");
  }
  entry_bits_ = (section(MapSectionId::kBlocks).size() - kBitStreamPadding) * 8;
  for (uint32_t block = 0; block < block_count_; ++block) {
    const uint64_t bit = BlockBit(block);
    if (bit < kHeadBytes * 8 || bit >= entry_bits_) {
      return Damaged("a block out of bounds");
    }
  }
  return {};
}

Status MapTables::CheckSegments() const {
  const size_t count = CountOf<MapSegment>(MapSectionId::kSegments);
  if (count == 0 || count > block_count_) return Damaged("segment count");
  for (size_t i = 0; i < count; ++i) {
    const auto segment = Load<MapSegment>(MapSectionId::kSegments, i);
    if (segment.first_block >= block_count_ ||
        Load<uint32_t>(MapSectionId::kBlockStarts, segment.first_block) != 0) {
      return Damaged("a segment does not start with its first block");
    }
    if (i == 0) {
      if (segment.first_block != 0) return Damaged("first segment");
      continue;
    }
    const auto before = Load<MapSegment>(MapSectionId::kSegments, i - 1);
    if (segment.first_block <= before.first_block ||
        segment.base <= before.base) {
      return Damaged("segments not in order");
    }
  }
  return {};
}

Status MapTables::CheckRuns() const {
  const size_t count = CountOf<MapRun>(MapSectionId::kRuns);
  const auto modules = section(MapSectionId::kModules).size() < sizeof(uint32_t)
                           ? 0
                           : Load<uint32_t>(MapSectionId::kModules, 0);
  if (count == 0) return Damaged("no runs");
  uint32_t previous = 0;
  for (size_t i = 0; i < count; ++i) {
    const auto run = Load<MapRun>(MapSectionId::kRuns, i);
    if (i == 0 ? run.first_entry != 0 : run.first_entry <= previous) {
      return Damaged("runs not in order");
    }
    if (run.module_and_letter >> 8 >= modules) {
      return Damaged("a run with an unknown module");
    }
    previous = run.first_entry;
  }
  return {};
}

Status MapTables::CheckModules() const {
  const size_t size = section(MapSectionId::kModules).size();
  if (size < sizeof(uint32_t)) return Damaged("module section too short");
  const auto count = Load<uint32_t>(MapSectionId::kModules, 0);
  const uint64_t table = (uint64_t{count} + 1) * sizeof(uint32_t);
  if (table > size) return Damaged("module section too short");
  uint32_t previous = 0;
  for (uint32_t i = 0; i < count; ++i) {
    const auto end = Load<uint32_t>(MapSectionId::kModules, 1 + size_t{i});
    if (end < previous || end > size - table) {
      return Damaged("a module name out of bounds");
    }
    previous = end;
  }
  return {};
}

Status MapTables::CheckClasses() const {
  const size_t character_bytes = section(MapSectionId::kCharacters).size();
  if (character_bytes < kBitStreamPadding) return Damaged("no tokens");
  const uint64_t bits = (character_bytes - kBitStreamPadding) * 8;
  uint64_t ranks = 0;
  for (size_t i = 0; i < CountOf<TokenClass>(MapSectionId::kClasses); ++i) {
    const auto c = Load<TokenClass>(MapSectionId::kClasses, i);
    const auto shape = c.shape();
    if (static_cast<size_t>(shape.width) >= kCharWidthCount ||
        static_cast<size_t>(shape.end) >= kTokenEndCount ||
        shape.index_bits > kMaxIndexBits) {
      return Damaged("a token class of unknown shape");
    }
    const uint64_t tokens = uint64_t{shape.ranks} << shape.index_bits;
    const uint64_t needed = tokens * shape.text_length * BitsOf(shape.width);
    if (c.first_bit + needed > bits ||
        (shape.width == CharWidth::kByte && c.first_bit % 8 != 0)) {
      return Damaged("a token class out of range");
    }
    ranks += shape.ranks;
  }
  if (ranks != token_code_.symbol_count()) {
    return Damaged("token classes for another number of words");
  }
  return {};
}

}  // namespace ksym
