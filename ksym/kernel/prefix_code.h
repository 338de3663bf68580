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

// Decodes a canonical code whose ranks stand for 16-bit values. Short words
// take one table look-up. Owns a table of 8 KiB.
class ValueDecoder {
 public:
  struct Word {
    uint32_t value;
    uint32_t length;
  };

  // An empty one: nothing may be decoded.
  ValueDecoder() = default;
  // `values` by rank, little endian, at least as many as code words (else
  // kCorrupt); must outlive the decoder.
  static Result<ValueDecoder> Make(const CodeLengthCounts& counts,
                                   std::span<const std::byte> values);

  Word Decode(uint32_t window) const {
    const uint32_t entry = table_[window >> (32 - kTableBits)];
    if (entry != 0) [[likely]]
      return {entry >> 8, entry & 0xff};
    return DecodeLong(window);
  }
  size_t memory_bytes() const { return table_.size() * sizeof(table_[0]); }

 private:
  static constexpr unsigned kTableBits = 11;

  Word DecodeLong(uint32_t window) const;

  PrefixDecoder code_;
  const std::byte* values_ = nullptr;
  std::vector<uint32_t> table_;  // value << 8 | length; 0: a longer word
};

}  // namespace ksym
