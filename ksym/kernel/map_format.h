#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "ksym/kernel/prefix_code.h"

namespace ksym {

// The compact map's bytes; docs/kallsyms.md describes them. Little endian.

inline constexpr std::array<char, 8> kMapMagic = {'K', 'S', 'Y', 'M',
                                                  'M', 'A', 'P', '\n'};
inline constexpr uint16_t kMapVersion = 2;
inline constexpr uint16_t kMapByteOrder = 0x0102;

// Entries of one block, of which a lookup decodes half on average: one less
// costs 4% of the bytes and saves 3% of the time.
inline constexpr uint32_t kBlockEntries = 5;
// Leading tokens that a name can share with the one before it.
inline constexpr uint32_t kMaxShared = 15;
// Blocks between two whole offsets.
inline constexpr uint32_t kBlocksPerOffset = 16;
// The class index has an entry for each of the first ranks, which are the
// common tokens, then one for several.
inline constexpr uint32_t kDirectRanks = 4096;
inline constexpr uint32_t kRanksPerClassIndex = 16;
constexpr uint32_t ClassIndexSlot(uint32_t rank) {
  return rank < kDirectRanks
             ? rank
             : kDirectRanks + (rank - kDirectRanks) / kRanksPerClassIndex;
}
// Tokens whose words are no longer than this have whole bytes as characters.
inline constexpr unsigned kShortTokenBits = 12;
// Longest text of one token; longer words are cut into several.
inline constexpr size_t kMaxTokenText = 63;

// How a token ends.
enum class TokenEnd : uint8_t {
  kEndOfName,
  kNothing,  // a word that was cut
  kUnderscore,
  kDot,
  kTwoUnderscores,
};
inline constexpr size_t kTokenEndCount = 5;
constexpr std::string_view TokenEndText(TokenEnd end) {
  constexpr std::string_view kTexts[kTokenEndCount] = {"", "", "_", ".", "__"};
  return kTexts[static_cast<size_t>(end)];
}

// Consecutive ranks whose tokens have the same length and shape; their texts
// lie one after another.
struct TokenClass {
  uint32_t first_rank;
  uint32_t first_bit;  // in the character section
  uint16_t text_length;
  TokenEnd end;
  uint8_t bits_per_char;  // 5, 6: an index into the alphabet; 8: the byte
};
static_assert(sizeof(TokenClass) == 12);

// Blocks whose starts are given relative to `base`.
struct MapSegment {
  uint32_t first_block;
  uint32_t reserved;
  uint64_t base;
};
static_assert(sizeof(MapSegment) == 16);

// Consecutive entries with the same module and type letter.
struct MapRun {
  uint32_t first_entry;
  uint32_t module_and_letter;  // module << 8 | lower-case letter
};
static_assert(sizeof(MapRun) == 8);

// Values of the entry code. An entry's delta to its predecessor's address, its
// case and whether it has a padding symbol are one value; what does not fit,
// or is too rare to be listed, follows an escape.
inline constexpr uint16_t kEntryUpper = 1;
inline constexpr uint16_t kEntryPrefixed = 2;
inline constexpr unsigned kEntryDeltaShift = 2;
inline constexpr uint16_t kEntryEscape = 0xffff;
inline constexpr uint64_t kMaxListedDelta =
    (kEntryEscape >> kEntryDeltaShift) - 1;
// After an escape: type (8 bits; 0 = a gap, which has no name), prefixed (1),
// number of bits of the delta (7), the delta.
inline constexpr unsigned kEscapeTypeBits = 8;
inline constexpr unsigned kEscapeWidthBits = 7;

// Values of the name code: how many tokens the name shares with the one before
// it, and how many bits its other tokens take. After an escape: shared (4
// bits), bits (32).
inline constexpr unsigned kNameLengthShift = 4;
inline constexpr uint16_t kNameSharedMask = 15;
inline constexpr uint16_t kNameEscape = 0xffff;
inline constexpr uint64_t kMaxListedLength =
    (kNameEscape >> kNameLengthShift) - 1;
inline constexpr unsigned kNameEscapeLengthBits = 32;

struct MapSection {
  uint32_t offset;
  uint32_t size;
};

enum class MapSectionId : uint8_t {
  kBlocks,        // the entries, bit stream; ends with kBitStreamPadding
  kBlockStarts,   // uint32_t per block
  kWholeOffsets,  // uint32_t per kBlocksPerOffset blocks
  kFineOffsets,   // uint16_t or uint32_t per block
  kSegments,      // MapSegment
  kRuns,          // MapRun
  kModules,       // uint32_t count, uint32_t ends[count], names
  kEntryValues,   // uint16_t per rank of the entry code
  kNameValues,    // uint16_t per rank of the name code
  kClasses,       // TokenClass
  kClassIndex,    // uint16_t per ClassIndexSlot of a rank: its class, or from
                  // kDirectRanks on that of the slot's first rank
  kCharacters,    // bit stream; ends with kBitStreamPadding
};
inline constexpr size_t kMapSectionCount = 12;

struct MapHeader {
  std::array<char, 8> magic;
  uint16_t version;
  uint16_t byte_order;
  uint32_t header_bytes;
  uint64_t file_bytes;
  uint64_t checksum;  // of the whole buffer, with 0 in this field
  uint32_t symbol_count;
  uint32_t entry_count;
  uint32_t max_name_bytes;  // of an entry
  uint32_t prefix_distance;
  uint32_t fine_offset_bytes;  // 2 or 4
  uint32_t reserved;
  std::array<MapSection, kMapSectionCount> sections;
  CodeLengthCounts token_lengths;
  CodeLengthCounts entry_lengths;
  CodeLengthCounts name_lengths;
  // Characters of 6 bits; the first 32 also of 5 bits.
  std::array<char, 64> alphabet;
};
static_assert(sizeof(MapHeader) % 8 == 0);

// FNV-1a over 64-bit words, the last one filled up with zeros, taking the
// header's checksum field as zero. Any change of one word changes it.
uint64_t MapChecksum(std::span<const std::byte> bytes);

}  // namespace ksym
