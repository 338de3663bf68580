#include "ksym/kernel/map_tables.h"

#include <algorithm>
#include <limits>
#include <string>

namespace ksym {
namespace {

// How tokens end. Two bytes are written always: a call of memcpy costs more
// than the rest.
constexpr char kEnds[kTokenEndCount][2] = {
    {}, {}, {'_', 0}, {'.', 0}, {'_', '_'}};
constexpr uint8_t kEndLengths[kTokenEndCount] = {0, 0, 1, 1, 2};

// A token with a short word, in 32 bits.
struct ShortToken {
  static constexpr uint32_t kMaxPlace = (1u << 19) - 1;

  uint32_t place;  // of the text, in bytes of the character section
  uint32_t text_length;
  TokenEnd end;
  uint32_t word_length;

  uint32_t Pack() const {
    static_assert(kMaxTokenText < 64 && kTokenEndCount <= 8 &&
                  kShortTokenBits < 16);
    return place << 13 | text_length << 7 | uint32_t(end) << 4 | word_length;
  }
  static uint32_t LengthOf(uint32_t packed) { return packed & 15; }
  static ShortToken Unpack(uint32_t packed) {
    return {packed >> 13, packed >> 7 & 63, TokenEnd(packed >> 4 & 7),
            LengthOf(packed)};
  }
};

}  // namespace

// Where RenderToken appends.
struct MapTables::Rendering {
  char* out;
  size_t used = 0;
  size_t room;
  bool ended = false;
};

uint64_t MapTables::SegmentBase(uint32_t block) const {
  uint32_t low = 0;
  uint32_t high = segment_count_;
  while (high - low > 1) {
    const uint32_t middle = low + (high - low) / 2;
    const auto segment = Load<MapSegment>(MapSectionId::kSegments, middle);
    (segment.first_block <= block ? low : high) = middle;
  }
  return Load<MapSegment>(MapSectionId::kSegments, low).base;
}

uint64_t MapTables::BlockStart(uint32_t block) const {
  return SegmentBase(block) + Load<uint32_t>(MapSectionId::kBlockStarts, block);
}

uint32_t MapTables::FindBlock(uint64_t address) const {
  uint32_t segment = segment_count_;
  while (segment > 0 &&
         Load<MapSegment>(MapSectionId::kSegments, segment - 1).base >
             address) {
    --segment;
  }
  if (segment == 0 || block_count_ == 0) return block_count_;
  const auto found = Load<MapSegment>(MapSectionId::kSegments, segment - 1);
  const uint64_t relative = address - found.base;
  const uint32_t end =
      segment == segment_count_
          ? block_count_
          : Load<MapSegment>(MapSectionId::kSegments, segment).first_block;
  if (relative > std::numeric_limits<uint32_t>::max()) return end - 1;
  // The last block of [low, end) that starts at or before; the segment's first
  // block starts at its base.
  uint32_t low = found.first_block;
  uint32_t count = end - low;
  while (count > 1) {
    const uint32_t half = count / 2;
    const auto start = Load<uint32_t>(MapSectionId::kBlockStarts, low + half);
    low += start <= relative ? half : 0;
    count -= half;
  }
  return low;
}

uint32_t MapTables::FirstBlockOfStart(uint32_t block) const {
  const uint64_t start = BlockStart(block);
  uint32_t low = 0;
  uint32_t high = block;
  while (low < high) {
    const uint32_t middle = low + (high - low) / 2;
    if (BlockStart(middle) < start) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

uint64_t MapTables::NextStart(uint32_t block) const {
  const uint64_t start = BlockStart(block);
  uint32_t low = block + 1;
  // Usually the very next one.
  if (low < block_count_ && BlockStart(low) > start) return BlockStart(low);
  uint32_t high = block_count_;
  while (low < high) {
    const uint32_t middle = low + (high - low) / 2;
    if (BlockStart(middle) <= start) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low < block_count_ ? BlockStart(low)
                            : std::numeric_limits<uint64_t>::max();
}

uint64_t MapTables::BlockBit(uint32_t block) const {
  const uint64_t whole =
      Load<uint32_t>(MapSectionId::kWholeOffsets, block / kBlocksPerOffset);
  const uint64_t fine = header_.fine_offset_bytes == sizeof(uint16_t)
                            ? Load<uint16_t>(MapSectionId::kFineOffsets, block)
                            : Load<uint32_t>(MapSectionId::kFineOffsets, block);
  return (whole + fine) * 8;
}

// Inlined with ReadNameHead, so that a search keeps the head in registers.
[[gnu::always_inline]] inline bool MapTables::ReadEntry(
    MapEntryHead& entry, MapEntryNames& names) const {
  if (entry.next_bit >= entry_bits_) return false;
  const uint64_t window = PeekBits57(BlockStream(), entry.next_bit);
  const auto value = entry_code_.Decode(static_cast<uint32_t>(window >> 32));
  entry.next_bit += value.length;
  if (value.value == kEntryEscape) [[unlikely]] {
    MapEntryHead escaped = entry;
    if (!ReadEscape(escaped)) return false;
    entry = escaped;
    if (!entry.gap) {
      return ReadNameHead(entry, names,
                          PeekBits57(BlockStream(), entry.next_bit));
    }
    // The next name refers to the one before the gap.
    const uint32_t position = entry.index % kBlockEntries;
    names.name_bits[position] =
        position == 0 ? entry.next_bit : names.name_bits[position - 1];
    names.shared[position] =
        position == 0 ? uint8_t{0} : names.shared[position - 1];
    return true;
  }
  entry.explicit_type = 0;
  entry.gap = false;
  entry.upper = (value.value & kEntryUpper) != 0;
  entry.prefixed = (value.value & kEntryPrefixed) != 0;
  entry.address += value.value >> kEntryDeltaShift;
  return ReadNameHead(entry, names, window << value.length);
}

[[gnu::always_inline]] inline bool MapTables::ReadNameHead(
    MapEntryHead& entry, MapEntryNames& names, uint64_t window) const {
  const auto value = name_code_.Decode(static_cast<uint32_t>(window >> 32));
  uint64_t bit = entry.next_bit + value.length;
  uint32_t shared = value.value & kNameSharedMask;
  uint64_t length = value.value >> kNameLengthShift;
  if (value.value == kNameEscape) [[unlikely]] {
    shared = PeekBits(BlockStream(), bit, kNameLengthShift);
    bit += kNameLengthShift;
    length = PeekBits(BlockStream(), bit, kNameEscapeLengthBits);
    bit += kNameEscapeLengthBits;
  }
  const uint32_t position = entry.index % kBlockEntries;
  names.name_bits[position] = bit;
  names.shared[position] = static_cast<uint8_t>(shared);
  entry.next_bit = bit + length;
  return entry.next_bit <= entry_bits_;
}

[[gnu::always_inline]] inline void MapTables::StartBlock(
    uint32_t block, MapEntryHead& entry) const {
  entry.index = block * kBlockEntries;
  entry.address = BlockStart(block);
  const uint64_t bit = BlockBit(block);
  entry.block_continues = PeekBits(BlockStream(), bit, 1) != 0;
  entry.next_bit = bit + 1;
}

bool MapTables::ReadFirst(uint32_t block, MapEntry& entry) const {
  StartBlock(block, entry);
  return ReadEntry(entry, entry);
}

bool MapTables::ReadNext(MapEntry& entry) const {
  if (entry.index + 1 == header_.entry_count) return false;
  if ((entry.index + 1) % kBlockEntries == 0) {
    return ReadFirst((entry.index + 1) / kBlockEntries, entry);
  }
  ++entry.index;
  return ReadEntry(entry, entry);
}

bool MapTables::FindInBlock(uint32_t block, uint64_t address, MapEntry& first,
                            uint64_t& end) const {
  MapEntryHead entry;
  StartBlock(block, entry);
  if (!ReadEntry(entry, first)) return false;
  MapEntryHead found = entry;
  while (!LastOfBlock(entry)) {
    ++entry.index;
    if (!ReadEntry(entry, first)) return false;
    if (entry.address == found.address) continue;
    const uint64_t start = entry.address - PaddingOf(entry);
    if (start > address) {
      static_cast<MapEntryHead&>(first) = found;
      end = start;
      return true;
    }
    found = entry;
  }
  static_cast<MapEntryHead&>(first) = found;
  end = NextStart(block);
  return true;
}

bool MapTables::ReadEscape(MapEntryHead& entry) const {
  const std::byte* stream = BlockStream();
  uint64_t bit = entry.next_bit;
  entry.explicit_type =
      static_cast<uint8_t>(PeekBits(stream, bit, kEscapeTypeBits));
  bit += kEscapeTypeBits;
  entry.prefixed = PeekBits(stream, bit, 1) != 0;
  bit += 1;
  const uint32_t width = PeekBits(stream, bit, kEscapeWidthBits);
  bit += kEscapeWidthBits;
  if (width > 64 || bit + width > entry_bits_) return false;
  const unsigned high_bits = width > 32 ? width - 32 : 0;
  const unsigned low_bits = width - high_bits;
  const uint64_t high = PeekBits(stream, bit, high_bits);
  const uint64_t low = PeekBits(stream, bit + high_bits, low_bits);
  entry.address += (high << low_bits) | low;
  entry.gap = entry.explicit_type == 0;
  entry.next_bit = bit + width;
  return true;
}

void MapTables::MakeRunHints() {
  const size_t runs = CountOf<MapRun>(MapSectionId::kRuns);
  run_hints_.reserve((header_.entry_count - 1) / kEntriesPerHint + 1);
  size_t run = 0;
  for (uint64_t i = 0; i < header_.entry_count; i += kEntriesPerHint) {
    while (run + 1 < runs &&
           Load<MapRun>(MapSectionId::kRuns, run + 1).first_entry <= i) {
      ++run;
    }
    run_hints_.push_back(static_cast<uint32_t>(run));
  }
}

MapTables::Kind MapTables::KindOf(const MapEntryHead& entry) const {
  // The last run that starts at or before the entry: between two hints.
  const size_t hint = entry.index / kEntriesPerHint;
  size_t low = run_hints_[hint];
  const size_t end = hint + 1 < run_hints_.size()
                         ? run_hints_[hint + 1]
                         : CountOf<MapRun>(MapSectionId::kRuns) - 1;
  while (low < end && Load<MapRun>(MapSectionId::kRuns, low + 1).first_entry <=
                          entry.index) {
    ++low;
  }
  const uint32_t packed =
      Load<MapRun>(MapSectionId::kRuns, low).module_and_letter;
  auto letter = static_cast<uint8_t>(packed & 0xff);
  if (entry.explicit_type != 0) {
    letter = entry.explicit_type;
  } else if (entry.upper) {
    letter = static_cast<uint8_t>(letter - 'a' + 'A');
  }
  return {ModuleName(packed >> 8), static_cast<char>(letter)};
}

std::string_view MapTables::ModuleName(uint32_t module) const {
  const auto count = Load<uint32_t>(MapSectionId::kModules, 0);
  const auto names = section(MapSectionId::kModules)
                         .subspan((1 + size_t{count}) * sizeof(uint32_t));
  const uint32_t begin =
      module == 0 ? 0 : Load<uint32_t>(MapSectionId::kModules, module);
  const auto end = Load<uint32_t>(MapSectionId::kModules, size_t{module} + 1);
  return {reinterpret_cast<const char*>(names.data()) + begin, end - begin};
}

TokenClass MapTables::ClassOf(uint32_t rank) const {
  size_t at = Load<uint16_t>(MapSectionId::kClassIndex, ClassIndexSlot(rank));
  const size_t class_count = CountOf<TokenClass>(MapSectionId::kClasses);
  auto token_class = Load<TokenClass>(MapSectionId::kClasses, at);
  while (at + 1 < class_count) {
    const auto next = Load<TokenClass>(MapSectionId::kClasses, at + 1);
    if (next.first_rank > rank) break;
    token_class = next;
    ++at;
  }
  return token_class;
}

void MapTables::MakeShortTokens() {
  short_tokens_.resize(size_t{1} << kShortTokenBits);
  for (uint32_t i = 0; i < short_tokens_.size();) {
    const auto word = token_code_.Decode(i << (32 - kShortTokenBits));
    if (word.length > kShortTokenBits) break;
    const TokenClass shape = ClassOf(word.rank);
    const uint64_t place =
        shape.first_bit / 8 +
        uint64_t{word.rank - shape.first_rank} * shape.text_length;
    const uint32_t end = i + (1u << (kShortTokenBits - word.length));
    if (shape.bits_per_char == 8 && shape.first_bit % 8 == 0 &&
        place <= ShortToken::kMaxPlace) {
      const ShortToken token = {static_cast<uint32_t>(place), shape.text_length,
                                shape.end, word.length};
      std::fill(short_tokens_.begin() + i, short_tokens_.begin() + end,
                token.Pack());
    }
    i = end;
  }
}

inline MapTables::TokenWord MapTables::DecodeToken(uint64_t bit) const {
  const uint32_t window = PeekBits32(BlockStream(), bit);
  const uint32_t packed = short_tokens_[window >> (32 - kShortTokenBits)];
  if (packed != 0) [[likely]] {
    return {packed, 0, ShortToken::LengthOf(packed)};
  }
  const auto word = token_code_.Decode(window);
  return {0, word.rank, word.length};
}

inline bool MapTables::RenderToken(const TokenWord& word, Rendering& to) const {
  if (word.packed != 0) [[likely]]
    return RenderShortToken(word.packed, to);
  return RenderLongToken(word.rank, to);
}

inline bool MapTables::RenderShortToken(uint32_t packed, Rendering& to) const {
  const auto token = ShortToken::Unpack(packed);
  const size_t size = token.text_length + kEndLengths[size_t(token.end)];
  if (to.room - to.used < size) return false;
  const std::byte* text =
      pointers_[size_t(MapSectionId::kCharacters)] + token.place;
  char* out = to.out + to.used;
  // 16 bytes at a time: name_room() and kBitStreamPadding have place for what
  // is too much.
  static_assert(kBitStreamPadding >= 16);
  std::memcpy(out, text, 16);
  for (size_t i = 16; i < token.text_length; i += 16) [[unlikely]] {
    std::memcpy(out + i, text + i, 16);
  }
  std::memcpy(out + token.text_length, kEnds[size_t(token.end)], 2);
  to.used += size;
  to.ended = token.end == TokenEnd::kEndOfName;
  return true;
}

bool MapTables::RenderLongToken(uint32_t rank, Rendering& to) const {
  const TokenClass shape = ClassOf(rank);
  const size_t length = shape.text_length;
  const size_t size = length + kEndLengths[size_t(shape.end)];
  if (to.room - to.used < size) return false;
  const unsigned width = shape.bits_per_char;
  uint64_t bit =
      shape.first_bit + uint64_t{rank - shape.first_rank} * length * width;
  const std::byte* stream = pointers_[size_t(MapSectionId::kCharacters)];
  char* out = to.out + to.used;
  to.used += size;
  to.ended = shape.end == TokenEnd::kEndOfName;
  if (width == 8) {
    for (size_t i = 0; i < length; ++i, bit += 8) {
      out[i] = static_cast<char>(PeekBits(stream, bit, 8));
    }
  } else {
    // Seven characters of five or six bits come with one load. Whole rounds
    // are written: name_room() has place for what is too much.
    const char* alphabet = header_.alphabet.data();
    for (size_t i = 0; i < length; i += 7, bit += size_t{7} * width) {
      uint64_t window = PeekBits57(stream, bit);
      for (size_t c = 0; c < 7; ++c, window <<= width) {
        out[i + c] = alphabet[window >> (64 - width)];
      }
    }
  }
  std::memcpy(out + length, kEnds[size_t(shape.end)], 2);
  return true;
}

bool MapTables::RenderShared(const MapEntry& entry, Rendering& to) const {
  uint32_t position = entry.index % kBlockEntries;
  const uint32_t count = entry.shared[position];
  // Walks back through the block: of each name those tokens that this one has
  // from it and it does not itself have from an earlier one.
  std::array<TokenWord, kMaxShared> tokens;
  for (uint32_t wanted = count; wanted > 0;) {
    if (position == 0) return false;
    --position;
    uint64_t bit = entry.name_bits[position];
    for (uint32_t i = entry.shared[position]; i < wanted; ++i) {
      if (bit >= entry_bits_) return false;
      tokens[i] = DecodeToken(bit);
      bit += tokens[i].length;
    }
    wanted = std::min<uint32_t>(wanted, entry.shared[position]);
  }
  for (uint32_t i = 0; i < count; ++i) {
    if (!RenderToken(tokens[i], to)) return false;
  }
  return true;
}

std::string_view MapTables::RenderName(const MapEntry& entry, char* out) const {
  Rendering to{.out = out, .room = header_.max_name_bytes};
  if (!RenderShared(entry, to)) return {};
  uint64_t bit = entry.name_bits[entry.index % kBlockEntries];
  do {
    if (bit >= entry_bits_) return {};
    const TokenWord word = DecodeToken(bit);
    bit += word.length;
    if (!RenderToken(word, to)) return {};
  } while (!to.ended);
  return {to.out, to.used};
}

}  // namespace ksym
