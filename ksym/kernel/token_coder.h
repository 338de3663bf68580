// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "ksym/base/heap_bytes.h"
#include "ksym/base/result.h"
#include "ksym/kernel/bit_stream.h"
#include "ksym/kernel/map_format.h"
#include "ksym/kernel/prefix_code.h"
#include "ksym/kernel/token_interner.h"

namespace ksym {

// Chooses code words for the tokens of a map and lays out their texts. Tokens
// that are common get a word each; rare ones share words with others of their
// shape, so neither an offset nor a length is stored for them.
//
// Prepare, then Count each token written, then Finish, then Write.
class TokenCoder {
 public:
  // `tokens` must not change until Finish has returned.
  void Prepare(const TokenInterner& tokens);
  uint32_t code_length(uint32_t id) const { return words_[id] & kLengthMask; }
  void Count(uint32_t id) { ++weights_[id]; }
  // kLimit for too many or too long tokens.
  Status Finish();

  // Only after Finish, like the following.
  void Write(uint32_t id, BitWriter::Burst& out) const {
    out.Write(words_[id] >> kLengthBits, words_[id] & kLengthMask);
  }

  const CodeLengthCounts& counts() const { return counts_; }
  const std::vector<TokenClass>& classes() const { return classes_; }
  const HeapBytes& characters() const { return characters_; }
  const std::array<char, 64>& alphabet() const { return alphabet_; }

 private:
  static constexpr unsigned kLengthBits = 5;
  static constexpr uint32_t kLengthMask = (1u << kLengthBits) - 1;
  static_assert(kMaxTokenBits + kLengthBits <= 32);

  // A token, and what decides which others it can share a word with.
  struct Shaped {
    uint32_t shape;
    uint32_t id;
  };
  // What gets a code word: up to 1 << index_bits tokens.
  struct Item {
    uint32_t weight;
    uint32_t first;  // in order_
    uint32_t count;
    uint32_t shape;  // with the index bits
  };

  void ChooseAlphabet();
  CharWidth WidthOf(uint32_t id) const;
  void SortTokens();
  void MakeItems(uint32_t bump);
  void AddSingle(uint32_t id);
  void AddGroup(const std::vector<uint32_t>& ids, uint32_t shape,
                uint32_t index_bits);
  // Bits that an ideal code would give a token - the binary logarithm of how
  // much rarer than everything it is, rounded - and some more.
  uint32_t LevelOf(uint32_t id, uint32_t bump) const;
  static constexpr uint32_t kMaxLevel = 31;
  using Levels = std::array<std::vector<uint32_t>, kMaxLevel + 1>;  // of ids
  // Leaves what is not full in the last level.
  void MakeFullGroups(uint32_t shape, Levels& levels);
  void MakeGroups(size_t begin, size_t end, uint32_t bump);
  void RankItems();
  Status LayOut();
  void AppendTexts(const Item& item, CharWidth width, BitWriter& to) const;

  const TokenInterner* tokens_ = nullptr;
  std::vector<uint32_t> weights_;  // by id
  std::vector<uint32_t> words_;    // by id: bits << kLengthBits | length
  uint64_t total_weight_ = 0;
  std::vector<Shaped> sorted_;    // by shape, then by weight
  std::vector<uint32_t> common_;  // ids
  std::vector<uint32_t> order_;   // ids by item
  std::vector<Item> items_;       // by rank in the end
  CodeLengthCounts counts_ = {};
  std::array<char, 64> alphabet_ = {};
  std::array<uint8_t, 256> char_index_ = {};  // 64: not in it
  std::vector<TokenClass> classes_;
  HeapBytes characters_;
};

}  // namespace ksym
