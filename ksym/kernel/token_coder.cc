#include "ksym/kernel/token_coder.h"

#include <algorithm>
#include <array>
#include <limits>
#include <numeric>

namespace ksym {
namespace {

constexpr uint8_t kNotInAlphabet = 64;
constexpr uint8_t kLeastBitsPerChar = 5;

// Of a token's shape.
uint8_t BitsPerChar(uint32_t shape) {
  return static_cast<uint8_t>((shape >> 6 & 3) + kLeastBitsPerChar);
}

// Stable, by the byte of the shape that starts at this bit.
template <unsigned kBit, typename Item>
void SortByByte(const std::vector<Item>& in, std::vector<Item>& out) {
  std::array<uint32_t, 257> begin = {};
  for (const Item& item : in) ++begin[(item.shape >> kBit & 0xff) + 1];
  for (size_t i = 1; i < begin.size(); ++i) begin[i] += begin[i - 1];
  for (const Item& item : in) out[begin[item.shape >> kBit & 0xff]++] = item;
}

}  // namespace

void TokenCoder::Prepare(const TokenInterner& tokens) {
  tokens_ = &tokens;
  weights_.resize(tokens.size());
}

void TokenCoder::ChooseAlphabet() {
  std::array<uint32_t, 256> uses = {};
  for (uint32_t id = 0; id < weights_.size(); ++id) {
    if (weights_[id] == 0) continue;
    for (const char c : tokens_->text(id)) ++uses[static_cast<uint8_t>(c)];
  }
  std::array<uint8_t, 256> order;
  std::iota(order.begin(), order.end(), uint8_t{0});
  std::ranges::sort(order, [&](uint8_t a, uint8_t b) {
    return uses[a] != uses[b] ? uses[a] > uses[b] : a < b;
  });
  char_index_.fill(kNotInAlphabet);
  for (size_t i = 0; i < alphabet_.size(); ++i) {
    char_index_[order[i]] = static_cast<uint8_t>(i);
    alphabet_[i] = static_cast<char>(order[i]);
  }
}

uint8_t TokenCoder::CharBits(uint32_t id, unsigned code_length) const {
  // The common ones are few: whole bytes make them quick to copy.
  if (code_length <= kShortTokenBits) return 8;
  uint8_t largest = 0;
  for (const char c : tokens_->text(id)) {
    largest = std::max(largest, char_index_[static_cast<uint8_t>(c)]);
  }
  if (largest < 32) return 5;
  return largest < alphabet_.size() ? 6 : 8;
}

// Tokens by how their rank is chosen, in 16 bits: code length, end, bits per
// character, text length.
uint32_t TokenCoder::ShapeOf(uint32_t id) const {
  static_assert(kMaxCodeBits < 32 && kTokenEndCount <= 8 && kMaxTokenText < 64);
  const uint32_t bits = CharBits(id, lengths_[id]) - kLeastBitsPerChar;
  return uint32_t{lengths_[id]} << 11 |
         static_cast<uint32_t>(tokens_->end(id)) << 8 | bits << 6 |
         static_cast<uint32_t>(tokens_->text(id).size());
}

void TokenCoder::SortByRank() {
  std::vector<Ranked> items;
  items.reserve(lengths_.size());
  for (uint32_t id = 0; id < lengths_.size(); ++id) {
    if (lengths_[id] == 0) continue;
    items.push_back({ShapeOf(id), id});
    ++counts_[lengths_[id]];
  }
  // Ties stay by id: a stable sort by the lower byte, then by the upper one.
  ranked_.resize(items.size());
  SortByByte<0>(items, ranked_);
  SortByByte<8>(ranked_, items);
  ranked_.swap(items);
  const auto words = MakeCodeWords(counts_);
  words_.resize(lengths_.size());
  for (size_t rank = 0; rank < ranked_.size(); ++rank) {
    words_[ranked_[rank].id] =
        words[rank].bits << kLengthBits | words[rank].length;
  }
}

Status TokenCoder::LayOut() {
  BitWriter characters;
  for (uint32_t rank = 0; rank < ranked_.size(); ++rank) {
    const auto [shape, id] = ranked_[rank];
    const auto text = tokens_->text(id);
    TokenClass own = {rank, 0, static_cast<uint16_t>(text.size()),
                      tokens_->end(id), BitsPerChar(shape)};
    if (classes_.empty() || classes_.back().text_length != own.text_length ||
        classes_.back().end != own.end ||
        classes_.back().bits_per_char != own.bits_per_char) {
      if (own.bits_per_char == 8) characters.Align();
      own.first_bit = static_cast<uint32_t>(characters.bit_count());
      classes_.push_back(own);
    }
    if (ClassIndexSlot(rank) == class_index_.size()) {
      class_index_.push_back(static_cast<uint16_t>(classes_.size() - 1));
    }
    for (const char c : text) {
      const auto byte = static_cast<uint8_t>(c);
      characters.Write(own.bits_per_char == 8 ? byte : char_index_[byte],
                       own.bits_per_char);
    }
    if (characters.bit_count() > std::numeric_limits<uint32_t>::max()) {
      return Fail(ErrorCode::kLimit, "more than 512 MiB of distinct tokens");
    }
  }
  characters.Align();
  for (size_t i = 0; i < kBitStreamPadding; ++i) characters.Write(0, 8);
  characters_ = std::move(characters).Take();
  return {};
}

Status TokenCoder::Finish() {
  if (weights_.size() > kMaxCodeSymbols) {
    return Fail(ErrorCode::kLimit, "more than " +
                                       std::to_string(kMaxCodeSymbols) +
                                       " distinct words in the names");
  }
  // A code needs two words at least; the second may never be written.
  auto used = static_cast<size_t>(
      std::ranges::count_if(weights_, [](uint32_t w) { return w != 0; }));
  for (size_t id = 0; used < 2; ++id) {
    if (weights_[id] != 0) continue;
    weights_[id] = 1;
    ++used;
  }
  lengths_ = MakeCodeLengths(weights_);
  ChooseAlphabet();
  SortByRank();
  weights_ = {};
  const auto done = LayOut();
  ranked_ = {};
  return done;
}

}  // namespace ksym
