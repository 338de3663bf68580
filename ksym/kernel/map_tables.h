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
  std::array<uint64_t, kBlockEntries> starts;
  std::array<uint8_t, kBlockEntries> leaders;  // the group's first in the block
  std::array<uint8_t, kBlockEntries> flags;
  std::array<uint8_t, kBlockEntries> explicit_types;
  // Where the name's own tokens start, and how many leading ones it shares
  // with the name before.
  std::array<uint64_t, kBlockEntries> name_bits;
  std::array<uint8_t, kBlockEntries> shared;
};

// Where a reader of the entries stands: an entry and its block. A value; copy
// it to come back to the entry.
struct MapEntry : MapEntryHead {
  MapBlock block;

  // The block's first entry has the address of the entry before it.
  bool continues() const {
    return index % kBlockEntries == 0 && block.continues;
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
    return entry_code_.memory_bytes() + name_code_.memory_bytes() +
           short_tokens_.size() * sizeof(short_tokens_[0]) +
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
  // The last block that starts at or before the address; block_count() if
  // none does.
  uint32_t FindBlock(uint64_t address) const;
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
  bool FindInBlock(uint32_t block, uint64_t address, MapEntry& first,
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
  struct Rendering;
  struct BitCursor;
  // A decoded token: a word of short_tokens_, or 0 and its rank.
  struct TokenWord {
    uint32_t packed;
    uint32_t rank;
    uint32_t length;  // of the code word
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
  // Of the segment's blocks [first, end): the last one that starts at or before
  // this many bytes after the segment's base.
  uint32_t FindInSegment(uint32_t first, uint32_t end, uint32_t relative) const;
  struct Span {
    uint32_t begin;
    uint32_t end;
  };
  // The last of ascending values that is at most `limit`; the span's first one
  // if no other is.
  static uint32_t LastUpTo(const std::byte* values, Span span, uint32_t limit);
  bool ReadBlock(uint32_t index, MapBlock& block) const;
  template <bool kWhole>  // the block is not the last one with fewer entries
  bool ReadHeads(BitCursor& bits, MapBlock& block) const;
  bool ReadEscape(BitCursor& bits, MapBlock& block, uint32_t position) const;
  template <bool kWhole>
  bool ReadNameHeads(BitCursor& bits, MapBlock& block) const;
  static void StandAt(uint32_t position, MapEntry& entry);
  bool RenderShared(const MapEntry& entry, Rendering& to) const;
  TokenClass ClassOf(uint32_t rank) const;
  void MakeShortTokens();
  void MakeRunHints();
  TokenWord DecodeToken(uint64_t bit) const;
  bool RenderToken(const TokenWord& word, Rendering& to) const;
  bool RenderShortToken(uint32_t packed, Rendering& to) const;
  bool RenderLongToken(uint32_t rank, Rendering& to) const;
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
  // Absent (no code words) when the map has no entries.
  PrefixDecoder token_code_;
  // By the first kShortTokenBits of a word: place and shape of the token's
  // text, packed; 0: a longer word.
  std::vector<uint32_t> short_tokens_;
  ValueDecoder entry_code_;
  ValueDecoder name_code_;
};

}  // namespace ksym
