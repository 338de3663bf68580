// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "ksym/kernel/prefix_code.h"

namespace ksym {

// Codes 16-bit values with a canonical prefix code. Its tables end with the
// largest value; 0xffff, the escape, stands first in them.
class ValueCoder {
 public:
  void Count(uint16_t value) {
    const size_t slot = SlotOf(value);
    if (slot >= weights_.size()) [[unlikely]]
      weights_.resize(std::bit_ceil(slot + 1));
    ++weights_[slot];
  }
  uint32_t weight(uint16_t value) const { return weights_[SlotOf(value)]; }
  // Counts escapes instead of the values with less weight.
  void EscapeBelow(uint32_t least) {
    for (size_t slot = 1; slot < weights_.size(); ++slot) {
      if (weights_[slot] >= least) continue;
      weights_[0] += weights_[slot];
      weights_[slot] = 0;
    }
  }

  // Weights below which a value costs less after an escape than in the list:
  // there it takes 16 bits, and a word of the code, which makes all others
  // longer by its share of them.
  uint32_t MinWeight() const {
    uint64_t total = 0;
    for (const uint32_t weight : weights_) total += weight;
    const uint64_t listed = 16 + total * 3 / 2 / kMaxCodeSymbols;
    auto least = static_cast<uint32_t>(listed / kEscapeBits) + 1;
    const auto kept = [&] {
      return static_cast<size_t>(std::ranges::count_if(
          weights_, [&](uint32_t weight) { return weight >= least; }));
    };
    while (kept() > kMaxCodeSymbols - 2) least *= 2;
    return least;
  }

  // The words have their bits in this order.
  void Finish(BitOrder order) {
    // A code needs two words at least.
    for (size_t slot = 0; slot < 2; ++slot) {
      weights_[slot] = std::max(weights_[slot], 1u);
    }
    const auto lengths = MakeCodeLengths(weights_);
    std::vector<uint32_t> ranked;  // length << 16 | slot
    for (uint32_t slot = 0; slot < lengths.size(); ++slot) {
      if (lengths[slot] == 0) continue;
      ranked.push_back(uint32_t{lengths[slot]} << 16 | slot);
      ++counts_[lengths[slot]];
    }
    std::ranges::sort(ranked);
    const auto words = MakeCodeWords(counts_);
    weights_ = {};
    words_.resize(lengths.size());
    for (size_t rank = 0; rank < words.size(); ++rank) {
      const uint32_t slot = ranked[rank] & 0xffff;
      const uint32_t bits = order == BitOrder::kLowestFirst
                                ? ReverseBits(words[rank])
                                : words[rank].bits;
      words_[slot] =
          static_cast<uint16_t>(bits << kLengthBits | words[rank].length);
      values_.push_back(static_cast<uint16_t>(slot - 1));
    }
  }

  CodeWord word(uint16_t value) const {
    const uint32_t packed = words_[SlotOf(value)];
    return {packed >> kLengthBits,
            static_cast<uint8_t>(packed & ((1u << kLengthBits) - 1))};
  }
  const CodeLengthCounts& counts() const { return counts_; }
  // By rank.
  const std::vector<uint16_t>& values() const { return values_; }

 private:
  // What an escape adds to a word, and leaves of it, about.
  static constexpr uint64_t kEscapeBits = 20;

  static size_t SlotOf(uint16_t value) {
    return static_cast<uint16_t>(value + 1);
  }

  static constexpr unsigned kLengthBits = 4;
  static_assert(kMaxCodeBits < 1u << kLengthBits &&
                kMaxCodeBits + kLengthBits <= 16);

  // By slot.
  std::vector<uint32_t> weights_ = std::vector<uint32_t>(2);
  std::vector<uint16_t> words_;  // bits, length
  std::vector<uint16_t> values_;
  CodeLengthCounts counts_ = {};
};

}  // namespace ksym
