// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "ksym/base/result.h"

namespace ksym {

// Longest code word, in bits: what one look-up in a small table decodes.
inline constexpr unsigned kMaxCodeBits = 11;
// Most symbols of one code.
inline constexpr size_t kMaxCodeSymbols = size_t{1} << kMaxCodeBits;

// Code words by length: index is the length in bits.
using CodeLengthCounts = std::array<uint32_t, kMaxCodeBits + 1>;

// Lengths of a prefix code (Huffman's, cut to kMaxCodeBits) for the weights; a
// weight of 0 gets length 0 = no code word. At least two weights must be above
// 0, at most kMaxCodeSymbols. O(n log n).
std::vector<uint8_t> MakeCodeLengths(std::span<const uint32_t> weights);

// The code words of a canonical code, by rank: rank 0 has the shortest word.
struct CodeWord {
  uint32_t bits = 0;
  uint8_t length = 0;
};
std::vector<CodeWord> MakeCodeWords(const CodeLengthCounts& counts);

// The word's bits in the other direction.
uint32_t ReverseBits(CodeWord word);

// Where the first bit of a word is in what a decoder looks at.
enum class BitOrder : uint8_t { kHighestFirst, kLowestFirst };

// Decodes ranks of a canonical code, whose only parameter is how many words
// each length has. Value type of 4 KiB.
class PrefixDecoder {
 public:
  // A code without words: nothing may be decoded.
  PrefixDecoder() = default;

  struct Word {
    uint32_t rank;
    uint32_t length;
  };

  // kCorrupt unless the words fill the code space exactly: then every
  // sequence of bits decodes to a rank below symbol_count().
  static Result<PrefixDecoder> Make(const CodeLengthCounts& counts,
                                    BitOrder order = BitOrder::kHighestFirst);

  // By rank: how many bits follow a word, which its length includes from now
  // on. At most 20.
  void Lengthen(std::span<const uint8_t> bits);

  // `bits`: the next kMaxCodeBits, and nothing above them.
  Word Decode(uint64_t bits) const {
    const uint32_t packed = table_[bits];
    return {packed >> kLengthBits, packed & ((1u << kLengthBits) - 1)};
  }

  uint32_t symbol_count() const { return symbol_count_; }

 private:
  static constexpr unsigned kLengthBits = 5;
  static_assert(kMaxCodeBits < 1u << kLengthBits &&
                kMaxCodeBits + kLengthBits <= 16);

  std::array<uint16_t, kMaxCodeSymbols> table_ = {};  // rank, length
  uint32_t symbol_count_ = 0;
};

}  // namespace ksym
