// SPDX-License-Identifier: Apache-2.0
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
inline constexpr uint16_t kMapVersion = 3;
inline constexpr uint16_t kMapByteOrder = 0x0102;

// Entries of one block, of which a lookup decodes half on average: one less
// costs 4% of the bytes and saves 3% of the time.
inline constexpr uint32_t kBlockEntries = 5;
// Leading tokens that a name can share with the one before it.
inline constexpr uint32_t kMaxShared = 15;
// Blocks between two whole offsets.
inline constexpr uint32_t kBlocksPerOffset = 16;
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

// How the characters of a token's text are stored.
enum class CharWidth : uint8_t {
  kFive,  // bits: one of the first 32 of the alphabet
  kSix,   // bits: one of the alphabet
  kByte,  // itself, from a whole byte on
};
inline constexpr size_t kCharWidthCount = 3;
constexpr unsigned BitsOf(CharWidth width) {
  constexpr unsigned kBits[kCharWidthCount] = {5, 6, 8};
  return kBits[static_cast<size_t>(width)];
}

// A word of the token code, and this many bits that follow it, are a token. A
// common token has a word of its own; a group of rare ones, all of one shape,
// shares a word and is told apart by the bits.
inline constexpr unsigned kMaxIndexBits = 16;
inline constexpr unsigned kMaxTokenBits = kMaxCodeBits + kMaxIndexBits;

// Consecutive ranks of the token code of one shape. Their tokens' texts lie one
// after another, at distances of text_length characters.
struct TokenClass {
  uint32_t first_bit;  // in the character section; of a byte for kByte
  uint32_t packed;

  struct Shape {
    uint32_t text_length;  // up to kMaxTokenText
    TokenEnd end;
    CharWidth width;
    uint32_t index_bits;  // up to kMaxIndexBits
    uint32_t ranks;       // up to kMaxCodeSymbols

    friend bool operator==(const Shape&, const Shape&) = default;
  };
  static constexpr uint32_t kOneRank = 1 << 16;
  static constexpr uint32_t Pack(const Shape& shape) {
    return shape.ranks * kOneRank | shape.index_bits << 11 |
           static_cast<uint32_t>(shape.width) << 9 |
           static_cast<uint32_t>(shape.end) << 6 | shape.text_length;
  }
  constexpr Shape shape() const {
    return {packed & 63, TokenEnd(packed >> 6 & 7), CharWidth(packed >> 9 & 3),
            packed >> 11 & 31, packed / kOneRank};
  }
};
static_assert(sizeof(TokenClass) == 8);

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
// or is too rare to be listed, follows the block's heads.
inline constexpr uint16_t kEntryUpper = 1;
inline constexpr uint16_t kEntryPrefixed = 2;
inline constexpr unsigned kEntryDeltaShift = 2;
inline constexpr uint16_t kEntryEscape = 0xffff;
inline constexpr uint64_t kMaxListedDelta =
    (kEntryEscape >> kEntryDeltaShift) - 1;
// For an escape: type (8 bits; 0 = a gap, which has no name), prefixed (1),
// number of bits of the delta (7), the delta.
inline constexpr unsigned kEscapeTypeBits = 8;
inline constexpr unsigned kEscapeWidthBits = 7;

// Values of the name code: how many tokens the name shares with the one before
// it, and how many bits its other tokens take. For an escape: shared (4 bits),
// number of bits of the other number (6), the number. A gap shares as many as
// can be, so that the next name has them from the one before the gap.
inline constexpr unsigned kNameLengthShift = 4;
inline constexpr uint16_t kNameSharedMask = 15;
inline constexpr uint16_t kNameEscape = 0xffff;
inline constexpr uint16_t kNameOfGap = kMaxShared;
inline constexpr uint64_t kMaxListedLength =
    (kNameEscape >> kNameLengthShift) - 1;
inline constexpr unsigned kNameEscapeWidthBits = 6;

// The heads of a block lie on both sides of the byte that its offset says: the
// entry values from there on, the name values from there back, the lowest bit
// of a byte first. So both can be decoded at the same time, each from one load
// of eight bytes.
inline constexpr size_t kHeadBytes = 8;
static_assert(1 + kBlockEntries * kMaxCodeBits <= kHeadBytes * 8);

struct MapSection {
  uint32_t offset;
  uint32_t size;
};

enum class MapSectionId : uint8_t {
  kBlocks,        // kHeadBytes zeros; the entries, bit stream;
                  // kBitStreamPadding
  kBlockStarts,   // uint32_t per block
  kWholeOffsets,  // uint32_t per kBlocksPerOffset blocks
  kFineOffsets,   // uint16_t or uint32_t per block
  kSegments,      // MapSegment
  kRuns,          // MapRun
  kModules,       // uint32_t count, uint32_t ends[count], names
  kEntryValues,   // uint16_t per rank of the entry code
  kNameValues,    // uint16_t per rank of the name code
  kClasses,       // TokenClass
  kCharacters,    // bit stream; ends with kBitStreamPadding
};
inline constexpr size_t kMapSectionCount = 11;

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
