// SPDX-License-Identifier: Apache-2.0
#include "ksym/kernel/prefix_code.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <functional>

namespace ksym {
namespace {

// The symbols with a weight, by weight, ties by symbol: weight above, symbol
// below. Nearly all weights are small, and those need no comparisons.
std::vector<uint64_t> SortByWeight(std::span<const uint32_t> weights) {
  constexpr uint32_t kLarge = 64;
  std::array<size_t, kLarge + 2> begin = {};
  for (const uint32_t weight : weights) ++begin[std::min(weight, kLarge) + 1];
  begin[1] = 0;  // what has no weight is left out
  for (size_t i = 1; i < begin.size(); ++i) begin[i] += begin[i - 1];
  std::vector<uint64_t> order(begin[kLarge + 1]);
  const size_t large = begin[kLarge];
  for (size_t i = 0; i < weights.size(); ++i) {
    if (weights[i] == 0) continue;
    order[begin[std::min(weights[i], kLarge)]++] =
        uint64_t{weights[i]} << 32 | i;
  }
  std::ranges::sort(order.begin() + static_cast<ptrdiff_t>(large), order.end());
  return order;
}

// Depths of Huffman's tree over ascending weights, by two queues: leaves, and
// inner nodes in the order they are made, which is ascending as well.
std::vector<uint32_t> TreeDepths(std::span<const uint64_t> ascending) {
  const size_t n = ascending.size();
  std::vector<uint64_t> weight(ascending.begin(), ascending.end());
  weight.reserve(2 * n - 1);
  std::vector<uint32_t> parent(2 * n - 1);
  size_t leaf = 0;
  size_t inner = n;
  while (weight.size() < 2 * n - 1) {
    uint64_t sum = 0;
    for (int child = 0; child < 2; ++child) {
      const bool take_leaf =
          leaf < n && (inner >= weight.size() || weight[leaf] <= weight[inner]);
      const size_t node = take_leaf ? leaf++ : inner++;
      parent[node] = static_cast<uint32_t>(weight.size());
      sum += weight[node];
    }
    weight.push_back(sum);
  }
  std::vector<uint32_t> depth(2 * n - 1);
  for (size_t node = 2 * n - 2; node-- > 0;) {
    depth[node] = depth[parent[node]] + 1;
  }
  depth.resize(n);
  return depth;
}

// Cuts depths to kMaxCodeBits and restores the Kraft sum by lengthening the
// deepest words that still can be. `depth` is descending (rarest first).
void LimitDepths(std::vector<uint32_t>& depth) {
  uint64_t used = 0;
  for (uint32_t& d : depth) {
    d = std::min(d, kMaxCodeBits);
    used += uint64_t{1} << (kMaxCodeBits - d);
  }
  constexpr uint64_t kSpace = uint64_t{1} << kMaxCodeBits;
  // One bit more for the rarest word that is not at the limit yet.
  for (auto at = depth.begin(); used > kSpace;) {
    if (*at == kMaxCodeBits) {
      ++at;
      continue;
    }
    used -= uint64_t{1} << (kMaxCodeBits - *at - 1);
    ++*at;
  }
  // Lengthening may have overshot; give the space back, commonest first.
  for (size_t i = depth.size(); i-- > 0 && used < kSpace;) {
    while (depth[i] > 1 &&
           used + (uint64_t{1} << (kMaxCodeBits - depth[i])) <= kSpace) {
      used += uint64_t{1} << (kMaxCodeBits - depth[i]);
      --depth[i];
    }
  }
}

}  // namespace

std::vector<uint8_t> MakeCodeLengths(std::span<const uint32_t> weights) {
  const std::vector<uint64_t> order = SortByWeight(weights);
  assert(order.size() >= 2 && order.size() <= kMaxCodeSymbols);
  std::vector<uint64_t> ascending(order.size());
  std::ranges::transform(order, ascending.begin(),
                         [](uint64_t item) { return item >> 32; });
  std::vector<uint32_t> depth = TreeDepths(ascending);
  std::ranges::sort(depth, std::greater<>());
  LimitDepths(depth);
  std::vector<uint8_t> lengths(weights.size());
  for (size_t i = 0; i < order.size(); ++i) {
    lengths[static_cast<uint32_t>(order[i])] = static_cast<uint8_t>(depth[i]);
  }
  return lengths;
}

std::vector<CodeWord> MakeCodeWords(const CodeLengthCounts& counts) {
  std::vector<CodeWord> words;
  uint32_t next = 0;
  for (unsigned length = 1; length <= kMaxCodeBits; ++length) {
    next <<= 1;
    for (uint32_t i = 0; i < counts[length]; ++i) {
      words.push_back({next++, static_cast<uint8_t>(length)});
    }
  }
  return words;
}

uint32_t ReverseBits(CodeWord word) {
  uint32_t reversed = 0;
  for (unsigned i = 0; i < word.length; ++i) {
    reversed = reversed << 1 | (word.bits >> i & 1);
  }
  return reversed;
}

Result<PrefixDecoder> PrefixDecoder::Make(const CodeLengthCounts& counts,
                                          BitOrder order) {
  uint64_t space = 0;
  for (unsigned length = 1; length <= kMaxCodeBits; ++length) {
    space += uint64_t{counts[length]} << (kMaxCodeBits - length);
  }
  if (space != kMaxCodeSymbols) {
    return Fail(ErrorCode::kCorrupt, "code words overlap or leave gaps");
  }
  PrefixDecoder decoder;
  for (const CodeWord& word : MakeCodeWords(counts)) {
    const auto packed = static_cast<uint16_t>(
        decoder.symbol_count_ << kLengthBits | word.length);
    const unsigned rest = kMaxCodeBits - word.length;
    const bool high = order == BitOrder::kHighestFirst;
    const uint32_t first = high ? word.bits << rest : ReverseBits(word);
    const uint32_t step = high ? 1 : 1u << word.length;
    for (uint32_t i = 0; i < 1u << rest; ++i) {
      decoder.table_[first + i * step] = packed;
    }
    ++decoder.symbol_count_;
  }
  return decoder;
}

void PrefixDecoder::Lengthen(std::span<const uint8_t> bits) {
  for (uint16_t& packed : table_) {
    packed = static_cast<uint16_t>(packed + bits[packed >> kLengthBits]);
  }
}

}  // namespace ksym
