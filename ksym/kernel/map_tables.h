// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "ksym/base/result.h"
#include "ksym/kernel/map_entry.h"
#include "ksym/kernel/map_format.h"
#include "ksym/kernel/map_names.h"
#include "ksym/kernel/map_sections.h"
#include "ksym/kernel/prefix_code.h"

namespace ksym {

// The blocks of a compact map: finding and decoding one. Borrows the bytes.
// Decoding is safe on any bytes that Parse accepted: no read outside of them,
// no endless loop; what is damaged within the bit streams ends in `false`.
class MapTables {
 public:
  // Checks header, checksum, every section's bounds and every index that
  // decoding follows. O(bytes).
  static Result<MapTables> Parse(std::span<const std::byte> bytes);

  // Allocated beside the bytes.
  size_t memory_bytes() const {
    return names_.memory_bytes() + run_hints_.size() * sizeof(run_hints_[0]) +
           start_samples_.size() * sizeof(start_samples_[0]) +
           start_top_samples_.size() * sizeof(start_top_samples_[0]);
  }
  const MapHeader& header() const { return map_.header(); }
  uint32_t block_count() const { return block_count_; }

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
    return entry.index + 1 == header().entry_count ||
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
    return entry.prefixed ? header().prefix_distance : 0;
  }

  struct Kind {
    std::string_view module;
    char type;
  };
  Kind KindOf(const MapEntryHead& entry) const;
  // Room for RenderName.
  size_t name_room() const { return MapNames::Room(map_); }
  // Writes the entry's name to `out`, which has name_room() bytes. An empty
  // view for a damaged name.
  std::string_view RenderName(const MapEntry& entry, char* out) const {
    return names_.Render(map_, entry, out);
  }

 private:
  struct BitCursor;
  // A block's words, before addresses and places are added up.
  struct BlockHeads {
    std::array<uint16_t, kBlockEntries> entries;
    std::array<uint16_t, kBlockEntries> names;
    std::array<uint64_t, kBlockEntries> deltas;
    std::array<uint32_t, kBlockEntries> name_bits;
    uint64_t end_bit;  // where the escapes are, if any, and then the names
    bool escaped;
  };

  Status MakeCodes();
  template <typename T>
  T Load(MapSectionId id, size_t index) const {
    return map_.Load<T>(id, index);
  }
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
  void MakeRunHints();
  std::string_view ModuleName(uint32_t module) const;

  MapSections map_;
  MapNames names_;
  // For each kEntriesPerHint entries: the run of the first one.
  static constexpr uint32_t kEntriesPerHint = 64;
  std::vector<uint32_t> run_hints_;
  // The starts of each kSampling-th block, and of each kSampling-th of those.
  static constexpr uint32_t kSampling = 16;
  std::vector<uint32_t> start_samples_;
  std::vector<uint32_t> start_top_samples_;
  uint32_t block_count_ = 0;
  uint32_t segment_count_ = 0;
  // Absent (no code words) when the map has no entries.
  PrefixDecoder entry_code_;
  PrefixDecoder name_code_;
};

}  // namespace ksym
