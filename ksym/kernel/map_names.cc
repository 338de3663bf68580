// SPDX-License-Identifier: Apache-2.0
#include "ksym/kernel/map_names.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "ksym/kernel/bit_stream.h"

namespace ksym {
namespace {

// How tokens end: two bytes, which are written always - a call of memcpy costs
// more than the rest - and how many of them count.
struct Ending {
  char text[2];
  uint16_t length;
};
constexpr Ending kEndings[8] = {
    {}, {}, {{'_', 0}, 1}, {{'.', 0}, 1}, {{'_', '_'}, 2}};
static_assert(kTokenEndCount == 5);

// Characters of a token, as they lie in the map.
struct PlacedText {
  uint64_t bit;
  uint32_t length;
  CharWidth width;
};

void RenderPacked(const MapSections& map, PlacedText text, char* out) {
  const std::byte* stream = map.At(MapSectionId::kCharacters);
  const char* alphabet = map.header().alphabet.data();
  const unsigned width = BitsOf(text.width);
  // Seven characters come with one load. Whole rounds are written: Room() has
  // place for what is too much.
  for (size_t i = 0; i < text.length; i += 7, text.bit += size_t{7} * width) {
    uint64_t window = PeekBits57(stream, text.bit);
#pragma GCC unroll 8
    for (size_t c = 0; c < 7; ++c, window <<= width) {
      out[i + c] = alphabet[window >> (64 - width)];
    }
  }
}

[[gnu::always_inline]] inline void RenderText(const MapSections& map,
                                              PlacedText text, char* out) {
  if (text.width != CharWidth::kByte) [[unlikely]]
    return RenderPacked(map, text, out);
  const std::byte* from = map.At(MapSectionId::kCharacters) + text.bit / 8;
  // 16 bytes at a time: Room() and kBitStreamPadding have place for what is too
  // much.
  static_assert(kBitStreamPadding >= 16);
  std::memcpy(out, from, 16);
  for (size_t i = 16; i < text.length; i += 16) [[unlikely]] {
    std::memcpy(out + i, from + i, 16);
  }
}

// For a token code with so many ranks.
Status CheckClasses(const MapSections& map, size_t ranks_of_code) {
  const size_t character_bytes = map.section(MapSectionId::kCharacters).size();
  if (character_bytes < kBitStreamPadding) return DamagedMap("no tokens");
  const uint64_t bits = (character_bytes - kBitStreamPadding) * 8;
  uint64_t ranks = 0;
  for (size_t i = 0; i < map.CountOf<TokenClass>(MapSectionId::kClasses); ++i) {
    const auto c = map.Load<TokenClass>(MapSectionId::kClasses, i);
    const auto shape = c.shape();
    if (static_cast<size_t>(shape.width) >= kCharWidthCount ||
        static_cast<size_t>(shape.end) >= kTokenEndCount ||
        shape.index_bits > kMaxIndexBits) {
      return DamagedMap("a token class of unknown shape");
    }
    const uint64_t tokens = uint64_t{shape.ranks} << shape.index_bits;
    const uint64_t needed = tokens * shape.text_length * BitsOf(shape.width);
    if (c.first_bit + needed > bits ||
        (shape.width == CharWidth::kByte && c.first_bit % 8 != 0)) {
      return DamagedMap("a token class out of range");
    }
    ranks += shape.ranks;
  }
  if (ranks != ranks_of_code) {
    return DamagedMap("token classes for another number of words");
  }
  return {};
}

}  // namespace

MapNames::TokenItem::TokenItem(const TokenClass& own, uint32_t rank_in_class) {
  const auto shape = own.shape();
  text_bits = static_cast<uint16_t>(shape.text_length * BitsOf(shape.width));
  first_bit =
      own.first_bit + rank_in_class * (uint32_t{text_bits} << shape.index_bits);
  length_and_width = static_cast<uint8_t>(
      shape.text_length | static_cast<uint32_t>(shape.width) << 6);
  end_and_index_bits = static_cast<uint8_t>(static_cast<uint32_t>(shape.end) |
                                            shape.index_bits << 3);
}

Result<MapNames> MapNames::Make(const MapSections& map) {
  auto code = PrefixDecoder::Make(map.header().token_lengths);
  if (!code) return DamagedMap("a prefix code is not complete");
  if (auto ok = CheckClasses(map, code->symbol_count()); !ok) {
    return Fail(ok.error());
  }
  MapNames names;
  names.code_ = *code;
  names.MakeItems(map);
  return names;
}

void MapNames::MakeItems(const MapSections& map) {
  items_.reserve(code_.symbol_count());
  std::vector<uint8_t> index_bits;
  for (size_t i = 0; i < map.CountOf<TokenClass>(MapSectionId::kClasses); ++i) {
    const auto own = map.Load<TokenClass>(MapSectionId::kClasses, i);
    for (uint32_t rank = 0; rank < own.shape().ranks; ++rank) {
      items_.emplace_back(own, rank);
      index_bits.push_back(static_cast<uint8_t>(own.shape().index_bits));
    }
  }
  code_.Lengthen(index_bits);
}

// Where the tokens of a block's name stand, with those that it shares: token i
// in the last name, of those up to this one, that shares no more than i. Where
// that is another one than for the token before, it is its first own token.
class MapNames::TokenPlaces {
 public:
  TokenPlaces(const MapBlock& block, uint32_t position)
      : block_(block),
        // Later names share too much ever to be looked at.
        shared_(block.shared | (kOnes * 0x7f << (8 * position) << 8)) {}

  // The bit of the token, if it is not the one after the last. False if no
  // name has it.
  bool Next(uint64_t& bit) {
    const uint64_t limits =
        std::min<uint64_t>(token_++, kMaxShared) * kOnes | kHighs;
    const uint64_t holders = (limits - shared_) & kHighs;
    if (holders == 0) return false;
    const uint32_t holder = (63 - std::countl_zero(holders)) / 8;
    // Without a branch, which nothing predicts.
    bit += (block_.name_bits[holder] - bit) & -uint64_t{holder != holder_};
    holder_ = holder;
    return true;
  }
  // The position of the name that the last token stands in.
  uint32_t holder() const { return holder_; }

 private:
  static constexpr uint64_t kOnes = 0x0101010101010101;
  static constexpr uint64_t kHighs = kOnes << 7;
  static_assert(kMaxShared < 0x7f && kBlockEntries < sizeof(uint64_t));

  const MapBlock& block_;
  uint64_t shared_;
  uint64_t token_ = 0;
  uint32_t holder_ = kBlockEntries;  // none yet
};

std::string_view MapNames::Render(const MapSections& map, const MapEntry& entry,
                                  char* out) const {
  const uint32_t position = entry.index % kBlockEntries;
  TokenPlaces places(entry.block, position);
  char* to = out;
  size_t room = map.header().max_name_bytes;
  uint64_t bit = 0;
  bool ended = false;
  // Each token lies at a higher bit or in a later name, so this ends.
  while (!ended) {
    if (!places.Next(bit) || bit >= map.entry_bits()) return {};
    const uint64_t window = PeekBits57(map.At(MapSectionId::kBlocks), bit);
    const auto word = code_.Decode(window >> (64 - kMaxCodeBits));
    bit += word.length;
    const TokenItem item = items_[word.rank];
    const auto index = static_cast<uint32_t>(window >> (64 - word.length)) &
                       ((1u << item.index_bits()) - 1);
    const Ending ending = kEndings[static_cast<size_t>(item.end())];
    const size_t size = item.text_length() + ending.length;
    if (room < size) return {};
    room -= size;
    RenderText(map,
               {item.first_bit + uint64_t{index} * item.text_bits,
                item.text_length(), item.width()},
               to);
    std::memcpy(to + item.text_length(), ending.text, sizeof ending.text);
    to += size;
    ended = item.end() == TokenEnd::kEndOfName;
  }
  // The last token is not shared.
  if (places.holder() != position) return {};
  return {out, static_cast<size_t>(to - out)};
}

}  // namespace ksym
