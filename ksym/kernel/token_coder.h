#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "ksym/base/result.h"
#include "ksym/kernel/bit_stream.h"
#include "ksym/kernel/map_format.h"
#include "ksym/kernel/prefix_code.h"
#include "ksym/kernel/token_interner.h"

namespace ksym {

// Chooses code words for the tokens of a map and lays out their texts. Tokens
// get ranks by (length of the code word, how they end, bits per character,
// length of the text): so neither an offset nor a length is stored per token.
//
// Prepare, then Count each token written, then Finish, then Write.
class TokenCoder {
 public:
  // `tokens` must not change until Finish has returned.
  void Prepare(const TokenInterner& tokens);
  uint8_t code_length(uint32_t id) const { return lengths_[id]; }
  void Count(uint32_t id) { ++weights_[id]; }
  // kLimit for more tokens than a code can have words.
  Status Finish();

  // Only after Finish, like the following.
  void Write(uint32_t id, BitWriter& out) const {
    out.Write(words_[id] >> kLengthBits, words_[id] & kLengthMask);
  }

  const CodeLengthCounts& counts() const { return counts_; }
  const std::vector<TokenClass>& classes() const { return classes_; }
  const std::vector<uint16_t>& class_index() const { return class_index_; }
  const std::vector<std::byte>& characters() const { return characters_; }
  const std::array<char, 64>& alphabet() const { return alphabet_; }

 private:
  static constexpr unsigned kLengthBits = 5;
  static constexpr uint32_t kLengthMask = (1u << kLengthBits) - 1;
  static_assert(kMaxCodeBits <= kLengthMask);

  struct Ranked {
    uint32_t shape;
    uint32_t id;
  };

  void ChooseAlphabet();
  uint8_t CharBits(uint32_t id, unsigned code_length) const;
  uint32_t ShapeOf(uint32_t id) const;
  void SortByRank();
  Status LayOut();

  const TokenInterner* tokens_ = nullptr;
  std::vector<uint32_t> weights_;  // by id
  std::vector<uint32_t> words_;    // by id: bits << kLengthBits | length
  std::vector<uint8_t> lengths_;   // of them, small enough for a near cache
  std::vector<Ranked> ranked_;     // by rank
  CodeLengthCounts counts_ = {};
  std::array<char, 64> alphabet_ = {};
  std::array<uint8_t, 256> char_index_ = {};  // 64: not in it
  std::vector<TokenClass> classes_;
  std::vector<uint16_t> class_index_;
  std::vector<std::byte> characters_;
};

}  // namespace ksym
