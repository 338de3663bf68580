// SPDX-License-Identifier: Apache-2.0
#include "ksym/kernel/token_coder.h"

#include <algorithm>
#include <array>
#include <bit>
#include <limits>
#include <numeric>
#include <utility>

namespace ksym {
namespace {

constexpr uint8_t kNotInAlphabet = 64;
// Tokens that are written so often have whole bytes as characters: for a
// hundredth more bytes a lookup takes a tenth less time.
constexpr uint32_t kCopiedUses = 6;
// So that no shape can have more groups than there are words.
constexpr size_t kMaxTokens = size_t{1} << 19;

// Shapes of rare tokens, in 16 bits: how the token ends, length of the text,
// width of a character, level. All but the level must agree in a group.
constexpr unsigned kLevelBits = 5;
constexpr unsigned kWidthShift = kLevelBits;
constexpr unsigned kLengthShift = kWidthShift + 2;
constexpr unsigned kEndShift = kLengthShift + 6;
static_assert(kTokenEndCount <= 8 && kMaxTokenText < 64 && kEndShift + 3 == 16);

CharWidth WidthOfShape(uint32_t shape) {
  return CharWidth(shape >> kWidthShift & 3);
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

CharWidth TokenCoder::WidthOf(uint32_t id) const {
  // Unpacking takes longer than copying, and which of both it is should be
  // easy to predict: packed ones are many, but few are read.
  if (weights_[id] >= kCopiedUses) return CharWidth::kByte;
  uint8_t largest = 0;
  for (const char c : tokens_->text(id)) {
    largest = std::max(largest, char_index_[static_cast<uint8_t>(c)]);
  }
  if (largest < 32) return CharWidth::kFive;
  return largest < alphabet_.size() ? CharWidth::kSix : CharWidth::kByte;
}

void TokenCoder::SortTokens() {
  std::vector<Shaped> items;
  items.reserve(weights_.size());
  for (uint32_t id = 0; id < weights_.size(); ++id) {
    if (weights_[id] == 0) continue;
    const uint32_t level = LevelOf(id, 0);
    if (level <= kMaxCodeBits) common_.push_back(id);
    items.push_back(
        {static_cast<uint32_t>(tokens_->end(id)) << kEndShift |
             static_cast<uint32_t>(tokens_->text(id).size()) << kLengthShift |
             static_cast<uint32_t>(WidthOf(id)) << kWidthShift | level,
         id});
  }
  // Ties stay by id: a stable sort by the lower byte, then by the upper one.
  sorted_.resize(items.size());
  SortByByte<0>(items, sorted_);
  SortByByte<8>(sorted_, items);
  sorted_.swap(items);
}

void TokenCoder::AddSingle(uint32_t id) {
  // The common ones are few: whole bytes make them quick to copy.
  const TokenClass::Shape shape = {
      static_cast<uint32_t>(tokens_->text(id).size()), tokens_->end(id),
      CharWidth::kByte, 0, 0};
  items_.push_back({weights_[id], static_cast<uint32_t>(order_.size()), 1,
                    TokenClass::Pack(shape)});
  order_.push_back(id);
}

void TokenCoder::AddGroup(const std::vector<uint32_t>& ids, uint32_t shape,
                          uint32_t index_bits) {
  if (ids.size() == 1) return AddSingle(ids.front());
  const TokenClass::Shape packed = {shape >> kLengthShift & 63,
                                    TokenEnd(shape >> kEndShift),
                                    WidthOfShape(shape), index_bits, 0};
  Item item = {0, static_cast<uint32_t>(order_.size()),
               static_cast<uint32_t>(ids.size()), TokenClass::Pack(packed)};
  for (const uint32_t id : ids) item.weight += weights_[id];
  order_.insert(order_.end(), ids.begin(), ids.end());
  items_.push_back(item);
}

uint32_t TokenCoder::LevelOf(uint32_t id, uint32_t bump) const {
  constexpr uint64_t kRootOfTwo = 181;  // / 128
  const uint64_t ratio = total_weight_ * kRootOfTwo / 128 / weights_[id];
  const auto level = static_cast<uint32_t>(std::bit_width(ratio | 1)) - 1;
  return std::min(level + bump, kMaxLevel);
}

// A group of 1 << n tokens takes those that would have words of n bits more
// than the longest.
void TokenCoder::MakeFullGroups(uint32_t shape, Levels& levels) {
  std::vector<uint32_t> open;
  std::vector<uint32_t> group;
  for (uint32_t level = kMaxCodeBits + 1; level <= kMaxLevel; ++level) {
    open.insert(open.end(), levels[level].begin(), levels[level].end());
    levels[level].clear();
    const uint32_t index_bits = std::min(level - kMaxCodeBits, kMaxIndexBits);
    const auto size = ptrdiff_t{1} << index_bits;
    auto at = open.begin();
    for (; open.end() - at >= size; at += size) {
      group.assign(at, at + size);
      AddGroup(group, shape, index_bits);
    }
    open.erase(open.begin(), at);
  }
  levels[kMaxLevel] = std::move(open);
}

// A group of the tokens that end alike and are equally long. What does not fill
// one goes into one with rarer tokens, or with wider characters.
void TokenCoder::MakeGroups(size_t begin, size_t end, uint32_t bump) {
  Levels levels;
  uint32_t shape = 0;
  for (size_t i = begin; i < end;) {
    shape = sorted_[i].shape >> kLevelBits << kLevelBits;
    for (const uint32_t id : std::exchange(levels[kMaxLevel], {})) {
      levels[LevelOf(id, bump)].push_back(id);
    }
    for (; i < end && sorted_[i].shape >> kLevelBits == shape >> kLevelBits;
         ++i) {
      const uint32_t level = LevelOf(sorted_[i].id, bump);
      if (level > kMaxCodeBits) levels[level].push_back(sorted_[i].id);
    }
    MakeFullGroups(shape, levels);
  }
  const auto& rest = levels[kMaxLevel];
  if (rest.empty()) return;
  AddGroup(rest, shape, static_cast<uint32_t>(std::bit_width(rest.size() - 1)));
}

void TokenCoder::MakeItems(uint32_t bump) {
  items_.clear();
  order_.clear();
  for (const uint32_t id : common_) {
    if (LevelOf(id, bump) <= kMaxCodeBits) {
      AddSingle(id);
    }
  }
  for (size_t begin = 0; begin < sorted_.size();) {
    size_t end = begin;
    while (end < sorted_.size() && sorted_[end].shape >> kLengthShift ==
                                       sorted_[begin].shape >> kLengthShift) {
      ++end;
    }
    MakeGroups(begin, end, bump);
    begin = end;
  }
}

void TokenCoder::RankItems() {
  std::vector<uint32_t> item_weights;
  item_weights.reserve(items_.size());
  for (const Item& item : items_) item_weights.push_back(item.weight);
  const auto lengths = MakeCodeLengths(item_weights);
  std::vector<uint32_t> ranked(items_.size());
  std::iota(ranked.begin(), ranked.end(), 0);
  // Those of one shape side by side: they are described once.
  std::ranges::stable_sort(ranked, [&](uint32_t a, uint32_t b) {
    return lengths[a] != lengths[b] ? lengths[a] < lengths[b]
                                    : items_[a].shape < items_[b].shape;
  });
  std::vector<Item> by_rank;
  by_rank.reserve(items_.size());
  for (const uint32_t i : ranked) {
    by_rank.push_back(items_[i]);
    ++counts_[lengths[i]];
  }
  items_.swap(by_rank);
  const auto words = MakeCodeWords(counts_);
  words_.resize(weights_.size());
  for (size_t rank = 0; rank < items_.size(); ++rank) {
    const Item& item = items_[rank];
    const uint32_t index_bits = TokenClass{0, item.shape}.shape().index_bits;
    for (uint32_t i = 0; i < item.count; ++i) {
      words_[order_[item.first + i]] = (words[rank].bits << index_bits | i)
                                           << kLengthBits |
                                       (words[rank].length + index_bits);
    }
  }
}

void TokenCoder::AppendTexts(const Item& item, CharWidth width,
                             BitWriter& to) const {
  BitWriter::Burst burst(to);
  for (uint32_t i = 0; i < item.count; ++i) {
    for (const char c : tokens_->text(order_[item.first + i])) {
      const auto byte = static_cast<uint8_t>(c);
      burst.Write(width == CharWidth::kByte ? byte : char_index_[byte],
                  BitsOf(width));
    }
  }
}

Status TokenCoder::LayOut() {
  BitWriter characters;
  uint64_t end = 0;  // of what a reader may look at
  bool filled = false;
  uint32_t shape_before = 0;
  for (const Item& item : items_) {
    const auto shape = TokenClass{0, item.shape}.shape();
    if (!filled || item.shape != shape_before) {
      if (shape.width == CharWidth::kByte) characters.Align();
      classes_.push_back(
          {static_cast<uint32_t>(characters.bit_count()), item.shape});
    }
    classes_.back().packed += TokenClass::kOneRank;
    const uint64_t begin = characters.bit_count();
    AppendTexts(item, shape.width, characters);
    const uint64_t slots = uint64_t{1} << shape.index_bits;
    end =
        std::max(end, begin + slots * shape.text_length * BitsOf(shape.width));
    filled = slots == item.count;
    shape_before = item.shape;
    if (end > std::numeric_limits<uint32_t>::max()) {
      return Fail(ErrorCode::kLimit, "more than 512 MiB of distinct tokens");
    }
  }
  while (characters.bit_count() < end) characters.Write(0, 1);
  characters.Align();
  for (size_t i = 0; i < kBitStreamPadding; ++i) characters.Write(0, 8);
  characters_ = std::move(characters).Take();
  return {};
}

Status TokenCoder::Finish() {
  if (weights_.size() > kMaxTokens) {
    return Fail(ErrorCode::kLimit, "more than " + std::to_string(kMaxTokens) +
                                       " distinct words in the names");
  }
  for (const uint32_t weight : weights_) total_weight_ += weight;
  ChooseAlphabet();
  SortTokens();
  // Rounding can make too many; each step halves all but the unfilled groups,
  // of which there is one per end and length.
  for (uint32_t bump = 0; bump == 0 || items_.size() > kMaxCodeSymbols; ++bump)
    MakeItems(bump);
  // A code needs two words at least; these may never be written.
  while (items_.size() < 2) AddSingle(0);
  for (Item& item : items_) item.weight = std::max(item.weight, 1u);
  RankItems();
  weights_ = {};
  sorted_ = {};
  order_ = {};
  const auto done = LayOut();
  items_ = {};
  return done;
}

}  // namespace ksym
