// The names of a compact map's entries: tokens into text.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "ksym/kernel/map_tables.h"

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

TokenClass MapTables::ClassOf(uint32_t rank) const {
  size_t at = Load<uint16_t>(MapSectionId::kClassIndex, ClassIndexSlot(rank));
  auto token_class = Load<TokenClass>(MapSectionId::kClasses, at);
  if (rank < kDirectRanks) [[likely]]
    return token_class;
  const size_t class_count = CountOf<TokenClass>(MapSectionId::kClasses);
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
  const MapBlock& block = entry.block;
  const uint32_t count = block.shared[position];
  // Walks back through the block: of each name those tokens that this one has
  // from it and it does not itself have from an earlier one.
  std::array<TokenWord, kMaxShared> tokens;
  for (uint32_t wanted = count; wanted > 0;) {
    if (position == 0) return false;
    --position;
    uint64_t bit = block.name_bits[position];
    for (uint32_t i = block.shared[position]; i < wanted; ++i) {
      if (bit >= entry_bits_) return false;
      tokens[i] = DecodeToken(bit);
      bit += tokens[i].length;
    }
    wanted = std::min<uint32_t>(wanted, block.shared[position]);
  }
  for (uint32_t i = 0; i < count; ++i) {
    if (!RenderToken(tokens[i], to)) return false;
  }
  return true;
}

std::string_view MapTables::RenderName(const MapEntry& entry, char* out) const {
  Rendering to{.out = out, .room = header_.max_name_bytes};
  if (!RenderShared(entry, to)) return {};
  uint64_t bit = entry.block.name_bits[entry.index % kBlockEntries];
  do {
    if (bit >= entry_bits_) return {};
    const TokenWord word = DecodeToken(bit);
    bit += word.length;
    if (!RenderToken(word, to)) return {};
  } while (!to.ended);
  return {to.out, to.used};
}

}  // namespace ksym
