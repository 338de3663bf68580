#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "ksym/base/result.h"

namespace ksym {

// Longest code word, in bits.
inline constexpr unsigned kMaxCodeBits = 20;
// Most symbols of one code, so that kMaxCodeBits always suffices.
inline constexpr size_t kMaxCodeSymbols = size_t{1} << (kMaxCodeBits - 1);

// Code words by length: index is the length in bits.
using CodeLengthCounts = std::array<uint32_t, kMaxCodeBits + 1>;

// Lengths of an optimal prefix code (Huffman's, cut to kMaxCodeBits) for the
// weights; a weight of 0 gets length 0 = no code word. At least two weights
// must be above 0, at most kMaxCodeSymbols. O(n log n).
std::vector<uint8_t> MakeCodeLengths(std::span<const uint32_t> weights);

// The code words of a canonical code, by rank: rank 0 has the shortest word.
struct CodeWord {
  uint32_t bits = 0;
  uint8_t length = 0;
};
std::vector<CodeWord> MakeCodeWords(const CodeLengthCounts& counts);

// Decodes ranks of a canonical code, whose only parameter is how many words
// each length has. Value type of about 500 bytes.
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
  static Result<PrefixDecoder> Make(const CodeLengthCounts& counts);

  // `window`: the next 32 bits, the first one most significant.
  Word Decode(uint32_t window) const {
    uint32_t length = first_length_[window >> 24];
    while (window > last_[length]) ++length;
    return {(window >> (32 - length)) + rank_bias_[length], length};
  }

  uint32_t symbol_count() const { return symbol_count_; }
  // The rank of the first word of this length.
  uint32_t first_rank(unsigned length) const { return first_rank_[length]; }

 private:
  std::array<uint8_t, 256> first_length_ = {};
  // The largest window that starts with a word of at most this length.
  std::array<uint32_t, kMaxCodeBits + 1> last_ = {};
  std::array<uint32_t, kMaxCodeBits + 1> rank_bias_ = {};
  std::array<uint32_t, kMaxCodeBits + 1> first_rank_ = {};
  uint32_t symbol_count_ = 0;
};

}  // namespace ksym
