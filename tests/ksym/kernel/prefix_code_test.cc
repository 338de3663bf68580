// SPDX-License-Identifier: Apache-2.0
#include "ksym/kernel/prefix_code.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "ksym/kernel/bit_stream.h"

namespace ksym {
namespace {

CodeLengthCounts CountsOf(const std::vector<uint8_t>& lengths) {
  CodeLengthCounts counts = {};
  for (const uint8_t length : lengths) counts[length] += length != 0 ? 1 : 0;
  return counts;
}

// Every word decodes to its rank, whatever bits follow, in both directions.
TEST(PrefixCode, WordsDecodeToTheirRanks) {
  std::mt19937 random(1);
  std::vector<uint32_t> weights(1500);
  for (uint32_t& weight : weights) {
    weight = static_cast<uint32_t>(1 + random() % 7 * (random() % 99));
  }
  const auto counts = CountsOf(MakeCodeLengths(weights));
  const auto words = MakeCodeWords(counts);
  const auto highest = PrefixDecoder::Make(counts);
  const auto lowest = PrefixDecoder::Make(counts, BitOrder::kLowestFirst);
  ASSERT_TRUE(highest && lowest);
  ASSERT_EQ(words.size(), weights.size());
  EXPECT_EQ(highest->symbol_count(), words.size());
  for (uint32_t rank = 0; rank < words.size(); ++rank) {
    const CodeWord word = words[rank];
    const unsigned rest = kMaxCodeBits - word.length;
    for (const uint32_t after : {0u, (1u << rest) - 1}) {
      const auto high = highest->Decode(word.bits << rest | after);
      EXPECT_EQ(high.rank, rank);
      EXPECT_EQ(high.length, word.length);
      const auto low = lowest->Decode(ReverseBits(word) | after << word.length);
      EXPECT_EQ(low.rank, rank);
      EXPECT_EQ(low.length, word.length);
    }
  }
}

// What follows a word counts as a part of it once the decoder is told.
TEST(PrefixCode, LengthsIncludeWhatFollows) {
  CodeLengthCounts counts = {};
  counts[1] = 1;
  counts[2] = 2;
  auto decoder = PrefixDecoder::Make(counts);
  ASSERT_TRUE(decoder);
  decoder->Lengthen(std::vector<uint8_t>{0, 20, 3});
  EXPECT_EQ(decoder->Decode(0).length, 1u);
  EXPECT_EQ(decoder->Decode(0b10u << (kMaxCodeBits - 2)).length, 22u);
  EXPECT_EQ(decoder->Decode(0b11u << (kMaxCodeBits - 2)).length, 5u);
  EXPECT_EQ(decoder->Decode(0b11u << (kMaxCodeBits - 2)).rank, 2u);
}

// As many symbols as the limit allows have words of that length.
TEST(PrefixCode, TheMostSymbolsFit) {
  std::vector<uint32_t> weights(kMaxCodeSymbols, 1);
  weights[5] = 1000000;
  const auto lengths = MakeCodeLengths(weights);
  EXPECT_EQ(CountsOf(lengths)[kMaxCodeBits], kMaxCodeSymbols);
  EXPECT_TRUE(PrefixDecoder::Make(CountsOf(lengths)));
}

// Weights that would need longer words get words of at most kMaxCodeBits, and
// the code stays complete.
TEST(PrefixCode, LengthsAreCutToTheLimit) {
  std::vector<uint32_t> weights = {1, 1};
  while (weights.size() < 44) {
    weights.push_back(weights[weights.size() - 1] +
                      weights[weights.size() - 2]);
  }
  const auto lengths = MakeCodeLengths(weights);
  for (const uint8_t length : lengths) {
    EXPECT_GE(length, 1);
    EXPECT_LE(length, kMaxCodeBits);
  }
  EXPECT_TRUE(PrefixDecoder::Make(CountsOf(lengths)));
}

// A weight of zero gets no word.
TEST(PrefixCode, UnusedSymbolsHaveNoWord) {
  const std::vector<uint32_t> weights = {0, 5, 0, 1};
  EXPECT_EQ(MakeCodeLengths(weights), (std::vector<uint8_t>{0, 1, 0, 1}));
}

// Word counts that overlap or leave gaps are refused: some bits would decode
// to nothing.
TEST(PrefixCode, IncompleteCodesAreRefused) {
  CodeLengthCounts counts = {};
  EXPECT_FALSE(PrefixDecoder::Make(counts));
  counts[1] = 1;
  EXPECT_FALSE(PrefixDecoder::Make(counts));
  counts[1] = 3;
  EXPECT_FALSE(PrefixDecoder::Make(counts));
  counts[1] = 2;
  EXPECT_TRUE(PrefixDecoder::Make(counts));
  counts[2] = 0xffffffff;
  EXPECT_FALSE(PrefixDecoder::Make(counts));
}

// Bits come back as they were written, across bytes.
TEST(BitStream, ReadsWhatWasWritten) {
  BitWriter writer;
  writer.Write(1, 1);
  writer.Write(0xabcdef01, 32);
  writer.Write(0, 0);
  writer.Write(5, 3);
  writer.Align();
  EXPECT_EQ(writer.byte_count(), 5u);
  for (size_t i = 0; i < kBitStreamPadding; ++i) writer.Write(0, 8);
  const HeapBytes written = std::move(writer).Take();
  const std::byte* bytes = written.data();
  EXPECT_EQ(PeekBits(bytes, 0, 1), 1u);
  EXPECT_EQ(PeekBits(bytes, 1, 32), 0xabcdef01u);
  EXPECT_EQ(PeekBits(bytes, 33, 3), 5u);
  EXPECT_EQ(PeekBits(bytes, 33, 0), 0u);
}

// Words of all lengths one after the other, in bursts of some.
TEST(BitStream, BurstsContinueEachOther) {
  BitWriter writer;
  constexpr uint32_t kWords = 5000;
  const auto length = [](uint32_t i) { return i * 7 % 33; };
  const auto value = [&](uint32_t i) {
    return static_cast<uint32_t>((uint64_t{i} * 0x9e3779b97f4a7c15 >> 31) &
                                 ((uint64_t{1} << length(i)) - 1));
  };
  for (uint32_t i = 0; i < kWords;) {
    BitWriter::Burst burst(writer);
    for (const uint32_t end = std::min(i + i % 5 + 1, kWords); i < end; ++i) {
      burst.Write(value(i), length(i));
    }
  }
  HeapBytes written = std::move(writer).Take();
  written.Resize(written.size() + kBitStreamPadding);
  uint64_t bit = 0;
  for (uint32_t i = 0; i < kWords; bit += length(i++)) {
    ASSERT_EQ(PeekBits(written.data(), bit, length(i)), value(i)) << i;
  }
}

// A writer goes on after the bytes that it shall keep, and grows as it must;
// what comes after those is room, whatever is in it.
TEST(BitStream, ContinuesAfterWhatItIsGiven) {
  for (const size_t given : {size_t{2}, size_t{3}, size_t{500}, size_t{9000}}) {
    BitWriter writer(HeapBytes(std::vector<std::byte>(given, std::byte{0x5a})),
                     3);
    writer.Reserve(1);
    for (uint32_t i = 0; i < 10000; ++i) writer.Write(i % 8, 3);
    EXPECT_EQ(writer.bit_count(), 24u + 30000u);
    HeapBytes written = std::move(writer).Take();
    ASSERT_EQ(written.size(), 3u + 30000u / 8);
    EXPECT_EQ(*(written.data() + 1), std::byte{0x5a});
    written.Resize(written.size() + kBitStreamPadding);
    for (uint32_t i = 0; i < 10000; ++i) {
      ASSERT_EQ(PeekBits(written.data(), 24 + 3 * i, 3), i % 8);
    }
  }
}

}  // namespace
}  // namespace ksym
