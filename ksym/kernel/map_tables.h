// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <vector>

#include "ksym/base/result.h"
#include "ksym/kernel/bit_stream.h"
#include "ksym/kernel/map_format.h"
#include "ksym/kernel/prefix_code.h"

namespace ksym {

// What one entry says.
struct MapEntryHead {
  uint32_t index = 0;  // of this entry in the map
  uint64_t address = 0;
  uint8_t explicit_type = 0;  // 0: the run's letter, with `upper`
  bool upper = false;
  bool prefixed = false;  // has a padding symbol prefix_distance before it
  bool gap = false;       // not a symbol: nothing lives from here on
};

// A block, decoded but for the names' tokens. By the entry's position in it.
struct MapBlock {
  // Case and padding as in the entry's value; what only an escape can say.
  static constexpr uint8_t kGap = 4;
  static_assert((kGap & (kEntryUpper | kEntryPrefixed)) == 0);

  uint32_t count = 0;  // entries
  // The first entry has the address of the entry before it.
  bool continues = false;
  std::array<uint64_t, kBlockEntries> addresses;
  // Where the entry's group begins to answer: its first entry's address, or
  // that of the entry's padding.
  std::array<uint64_t, kBlockEntries + 1> starts;  // then the next block's
  std::array<uint8_t, kBlockEntries> leaders;  // the group's first in the block
  std::array<uint8_t, kBlockEntries> flags;
  std::array<uint8_t, kBlockEntries> explicit_types;
  // Where the name's own tokens start.
  std::array<uint64_t, kBlockEntries> name_bits;
  // How many leading ones it shares with the name before: a byte for each
  // position, the lowest one first.
  uint64_t shared;
  static_assert(kBlockEntries <= sizeof shared);
};

// Where a reader of the entries stands: an entry and its block. A value; copy
// it to come back to the entry.
struct MapEntry : MapEntryHead {
  MapBlock block;

  // The block's first entry has the address of the entry before it.
  bool continues() const {
    return block.continues && index % kBlockEntries == 0;
  }
};

// The parts of a compact map and the decoding of one entry. Borrows the bytes.
// Decoding is safe on any bytes that Parse accepted: no read outside of them,
// no endless loop; what is damaged within the bit streams ends in `false`.
class MapTables {
 public:
  // Checks header, checksum, every section's bounds and every index that
  // decoding follows. O(bytes).
  static Result<MapTables> Parse(std::span<const std::byte> bytes);

  // Allocated beside the bytes.
  size_t memory_bytes() const {
    return token_items_.size() * sizeof(token_items_[0]) +
           run_hints_.size() * sizeof(run_hints_[0]) +
           start_samples_.size() * sizeof(start_samples_[0]) +
           start_top_samples_.size() * sizeof(start_top_samples_[0]);
  }
  const MapHeader& header() const { return header_; }
  uint32_t block_count() const { return block_count_; }
  std::span<const std::byte> section(MapSectionId id) const {
    const MapSection s = header_.sections[static_cast<size_t>(id)];
    return bytes_.subspan(s.offset, s.size);
  }

  // The address from which the block answers: its first entry's, or that of
  // the entry's padding.
  uint64_t BlockStart(uint32_t block) const;
  struct BlockPlace {
    uint32_t index;
    uint64_t start;
    uint64_t next_start;  // of the first later one that starts later
  };
  // The last block that starts at or before the address; index block_count()
  // if none does.
  BlockPlace FindBlock(uint64_t address) const;
  // The first block with the same start.
  uint32_t FirstBlockOfStart(uint32_t block) const;
  // The start of the first block after this one that starts later, or the
  // largest address.
  uint64_t NextStart(uint32_t block) const;

  // Decodes the block and stands at its first entry.
  bool ReadFirst(uint32_t block, MapEntry& entry) const;
  // The next entry, in the same block or the next one; false at the end of the
  // map as well.
  bool ReadNext(MapEntry& entry) const;
  // True when the entry is the last one of its block.
  bool LastOfBlock(const MapEntryHead& entry) const {
    return entry.index + 1 == header_.entry_count ||
           (entry.index + 1) % kBlockEntries == 0;
  }

  // Looks in a block that FindBlock has found: `first` is the first entry, of
  // those in the block, with the address of the last symbol (or padding of
  // one) at or before `address`; `end` is where the next one starts. False for
  // damaged bytes.
  bool FindInBlock(const BlockPlace& block, uint64_t address, MapEntry& first,
                   uint64_t& end) const;
  // Bytes of padding before the entry's symbol.
  uint64_t PaddingOf(const MapEntryHead& entry) const {
    return entry.prefixed ? header_.prefix_distance : 0;
  }

  struct Kind {
    std::string_view module;
    char type;
  };
  Kind KindOf(const MapEntryHead& entry) const;
  // Room for RenderName: it writes whole words past the name's end.
  size_t name_room() const {
    return size_t{header_.max_name_bytes} + kMaxTokenText + 8;
  }
  // Writes the entry's name to `out`, which has name_room() bytes. An empty
  // view for a damaged name.
  std::string_view RenderName(const MapEntry& entry, char* out) const;

 private:
  struct BitCursor;
  class TokenPlaces;
  // The tokens of one rank of the token code, in eight bytes.
  struct TokenItem {
    uint32_t first_bit;  // of the first one's text
    uint16_t text_bits;  // of each
    uint8_t length_and_width;
    uint8_t end_and_index_bits;

    TokenItem(const TokenClass& own, uint32_t rank_in_class);
    uint32_t text_length() const { return length_and_width & 63; }
    CharWidth width() const { return CharWidth(length_and_width >> 6); }
    TokenEnd end() const { return TokenEnd(end_and_index_bits & 7); }
    uint32_t index_bits() const { return end_and_index_bits >> 3; }
  };
  static_assert(sizeof(TokenItem) == 8 && kMaxTokenText < 64 &&
                kTokenEndCount <= 8 && kMaxIndexBits < 32);
  // A block's words, before addresses and places are added up.
  struct BlockHeads {
    std::array<uint16_t, kBlockEntries> entries;
    std::array<uint16_t, kBlockEntries> names;
    std::array<uint64_t, kBlockEntries> deltas;
    std::array<uint32_t, kBlockEntries> name_bits;
    uint64_t end_bit;  // where the escapes are, if any, and then the names
    bool escaped;
  };

  Status ParseSections();
  Status ParseCodes();
  Status CheckBlocks();
  Status CheckClasses() const;
  Status CheckSegments() const;
  Status CheckRuns() const;
  Status CheckModules() const;

  template <typename T>
  T Load(MapSectionId id, size_t index) const {
    T value;
    std::memcpy(&value, pointers_[static_cast<size_t>(id)] + index * sizeof(T),
                sizeof(T));
    return value;
  }
  template <typename T>
  size_t CountOf(MapSectionId id) const {
    return section(id).size() / sizeof(T);
  }
  const std::byte* BlockStream() const {
    return pointers_[static_cast<size_t>(MapSectionId::kBlocks)];
  }
  uint64_t BlockBit(uint32_t block) const;
  uint64_t SegmentBase(uint32_t block) const;
  void MakeStartSamples();
  struct Span {
    uint32_t begin;
    uint32_t end;
  };
  // The last of the segment's blocks that starts at or before this many
  // bytes after the segment's base.
  uint32_t FindInSegment(Span segment, uint32_t relative) const;
  // The last of ascending values that is at most `limit`; the span's first one
  // if no other is.
  static uint32_t LastUpTo(const std::byte* values, Span span, uint32_t limit);
  bool ReadBlock(uint32_t index, uint64_t start, MapBlock& block) const;
  void ReadHeads(uint32_t index, MapBlock& block, BlockHeads& heads) const;
  bool ReadEscapes(MapBlock& block, BlockHeads& heads) const;
  static bool ReadEntryEscape(BitCursor& bits, MapBlock& block,
                              BlockHeads& heads, uint32_t position);
  void PlaceEntries(const BlockHeads& heads, MapBlock& block) const;
  static void StandAt(uint32_t position, MapEntry& entry);
  void MakeTokenItems();
  void MakeRunHints();
  void RenderText(const TokenItem& item, uint32_t index, char* out) const;
  void RenderPacked(uint64_t bit, uint32_t length, unsigned width,
                    char* out) const;
  std::string_view ModuleName(uint32_t module) const;

  std::span<const std::byte> bytes_;
  std::array<const std::byte*, kMapSectionCount> pointers_ = {};
  MapHeader header_ = {};
  // For each kEntriesPerHint entries: the run of the first one.
  static constexpr uint32_t kEntriesPerHint = 64;
  std::vector<uint32_t> run_hints_;
  // The starts of each kSampling-th block, and of each kSampling-th of those.
  static constexpr uint32_t kSampling = 16;
  std::vector<uint32_t> start_samples_;
  std::vector<uint32_t> start_top_samples_;
  uint32_t block_count_ = 0;
  uint32_t segment_count_ = 0;
  uint64_t entry_bits_ = 0;  // valid bits of kBlocks
  // Absent (no code words) when the map has no entries. A word of the token
  // code is as long as with the bits that follow it.
  PrefixDecoder token_code_;
  PrefixDecoder entry_code_;
  PrefixDecoder name_code_;
  std::vector<TokenItem> token_items_;  // by rank of the token code
};

}  // namespace ksym
