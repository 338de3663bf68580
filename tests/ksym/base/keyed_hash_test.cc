// SPDX-License-Identifier: Apache-2.0
#include "ksym/base/keyed_hash.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <unordered_set>
#include <vector>

#include "ksym/base/number_hash.h"
#include "ksym/base/string_pool.h"
#include "tests/ksym/base/chosen_keys.h"

namespace ksym {
namespace {

struct KnownHash {
  size_t bytes;
  uint64_t hash;
};

// The bytes 0, 1, 2, ...
std::string CountingBytes(size_t count) {
  std::string text;
  for (size_t i = 0; i < count; ++i) text += static_cast<char>(i);
  return text;
}

constexpr HashKey kReferenceKey = {.k0 = 0x0706050403020100,
                                   .k1 = 0x0f0e0d0c0b0a0908};

// SipHash-2-4 gives what the reference implementation lists (vectors.h).
TEST(SipHashTest, IsTheReference24) {
  for (const KnownHash& known :
       std::vector<KnownHash>{{0, 0x726fdb47dd0e0e31},
                              {1, 0x74f839c593dc67fd},
                              {7, 0xab0200f58b01d137},
                              {8, 0x93f5f5799a932462},
                              {9, 0x9e0082df0ba9e4b0},
                              {15, 0xa129ca6149be45e5},
                              {16, 0x3f2acc7f57c29bdb},
                              {63, 0x958a324ceb064572}}) {
    EXPECT_EQ(
        (SipHashOf<SipHash<2, 4>>(kReferenceKey, CountingBytes(known.bytes))),
        known.hash)
        << known.bytes;
  }
}

// SipHash-1-3 gives what Rust's library has, and, with the key 0, CPython:
// hash(bytes(range(15))) with PYTHONHASHSEED=0.
TEST(SipHashTest, IsTheReference13) {
  for (const KnownHash& known :
       std::vector<KnownHash>{{0, 0xabac0158050fc4dc},
                              {1, 0xc9f49bf37d57ca93},
                              {7, 0xd3927d989bb11140},
                              {8, 0x369095118d299a8e},
                              {9, 0x25a48eb36c063de4},
                              {15, 0xd320d86d2a519956},
                              {16, 0xcc4fdd1a7d908b66},
                              {63, 0x9d199062b7bbb3a8}}) {
    EXPECT_EQ(
        (SipHashOf<SipHash<1, 3>>(kReferenceKey, CountingBytes(known.bytes))),
        known.hash)
        << known.bytes;
  }
  for (const KnownHash& known : std::vector<KnownHash>{
           {15, 0xf30eb725bb91c9ea}, {63, 0x385d3e39e5f37359}}) {
    EXPECT_EQ((SipHashOf<SipHash<1, 3>>({}, CountingBytes(known.bytes))),
              known.hash)
        << known.bytes;
  }
}

// One key as long as the process lives, and another one for each that asks.
TEST(KeyedHashTest, HasAKeyOfItsOwn) {
  EXPECT_EQ(&ProcessHashKey(), &ProcessHashKey());
  const HashKey one = MakeHashKey();
  const HashKey other = MakeHashKey();
  EXPECT_NE(one.k0, other.k0);
  EXPECT_NE(one.k1, other.k1);
  EXPECT_EQ(HashText("main"), HashText(std::string("main")));
  EXPECT_NE(HashText("main"), HashText("mair"));
  EXPECT_NE(HashWords(1, 2), HashWords(2, 1));
}

template <typename Table>
size_t LargestBucket(const Table& table) {
  size_t largest = 0;
  for (size_t i = 0; i < table.bucket_count(); ++i) {
    largest = std::max(largest, table.bucket_size(i));
  }
  return largest;
}

// A thousand buckets of so many have at most about nine by chance.
constexpr size_t kMostInBucket = 20;

// Texts that are one to std::hash are many with a key.
TEST(KeyedHashTest, SpreadsChosenTexts) {
  const auto texts = TextsOfOneHash(kChosenKeys);
  std::set<size_t> hashes;
  for (const std::string& text : texts) {
    hashes.insert(std::hash<std::string>()(text));
  }
  ASSERT_EQ(hashes.size(), 1u) << "the texts are not of this library's hash";
  const std::unordered_set<std::string, TextHash> table(texts.begin(),
                                                        texts.end());
  EXPECT_EQ(table.size(), texts.size());
  EXPECT_LE(LargestBucket(table), kMostInBucket);
}

TEST(KeyedHashTest, SpreadsChosenNumbers) {
  const auto numbers = NumbersOfOneBucket(kChosenKeys);
  std::unordered_set<uint64_t, NumberHash> table;
  table.insert(numbers.begin(), numbers.end());
  EXPECT_EQ(table.size(), numbers.size());
  EXPECT_LE(LargestBucket(table), kMostInBucket);
}

// The upper half of a * x + b, where it is known.
TEST(NumberHashTest, IsAMultiplication) {
  const HashKey key = kReferenceKey;
  const NumberHashKey hash(key);
  const uint64_t zero = hash.Hash(0);
  const uint64_t half = uint64_t{1} << 63;
  const uint64_t low = SipHash<2, 4>(key).Add(1).Finish();
  const uint64_t high = SipHash<2, 4>(key).Add(2).Finish();
  EXPECT_EQ(hash.Hash(1) - zero, high);
  EXPECT_EQ(hash.Hash(half) - zero, (low >> 1) + (high << 63));
  EXPECT_NE(NumberHashKey({.k0 = 1, .k1 = 2}).Hash(1), hash.Hash(1));
}

// Numbers in a row, and multiples of one, are as spread as others. The key is a
// known one: with one of a thousand some dozen of these share a slot.
TEST(NumberHashTest, SpreadsChosenNumbers) {
  const NumberHashKey hash(kReferenceKey);
  constexpr uint64_t kSlots = 32768;
  for (const uint64_t step : {uint64_t{1}, kSlots, uint64_t{1} << 32,
                              (uint64_t{1} << 32) + 1, uint64_t{1} << 48}) {
    std::vector<size_t> slots(kSlots);
    for (uint64_t i = 0; i < kChosenKeys; ++i) {
      ++slots[hash.Hash(i * step) % kSlots];
    }
    EXPECT_LE(std::ranges::max(slots), kMostInBucket) << step;
  }
}

TEST(KeyedHashTest, KeepsStringPoolFast) {
  const auto intern = [](const std::vector<std::string>& texts) {
    StringPool pool(16 * texts.size());
    for (const std::string& text : texts) pool.Intern(text);
    EXPECT_EQ(pool.size(), texts.size());
  };
  EXPECT_LT(TimesLonger(intern, OrdinaryTexts(kChosenKeys),
                        TextsOfOneHash(kChosenKeys)),
            kMostTimesLonger);
}

}  // namespace
}  // namespace ksym
