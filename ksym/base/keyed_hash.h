// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace ksym {

// Hashes for tables whose keys others choose: names of functions, numbers in
// files. Without a secret, somebody can make keys that all have one hash, and
// each look-up then takes as long as there are keys. A secret start value alone
// is not enough: blocks of text that are equal to MurmurHash2, which std::hash
// is, are so for each start value.

struct HashKey {
  uint64_t k0 = 0;
  uint64_t k1 = 0;
};

// SipHash-c-d of J.-P. Aumasson and D. J. Bernstein ("SipHash: a fast
// short-input PRF", 2012) over words of 64 bits. What is hashed under one key
// and has different numbers of words begins with that number.
template <unsigned kCompressions, unsigned kFinalizations>
class SipHash {
 public:
  explicit SipHash(const HashKey& key)
      : v0_(key.k0 ^ 0x736f6d6570736575),
        v1_(key.k1 ^ 0x646f72616e646f6d),
        v2_(key.k0 ^ 0x6c7967656e657261),
        v3_(key.k1 ^ 0x7465646279746573) {}

  SipHash& Add(uint64_t word) {
    v3_ ^= word;
    for (unsigned i = 0; i < kCompressions; ++i) Round();
    v0_ ^= word;
    return *this;
  }

  uint64_t Finish() {
    v2_ ^= 0xff;
    for (unsigned i = 0; i < kFinalizations; ++i) Round();
    return v0_ ^ v1_ ^ v2_ ^ v3_;
  }

 private:
  void Round() {
    v0_ += v1_;
    v2_ += v3_;
    v1_ = std::rotl(v1_, 13) ^ v0_;
    v3_ = std::rotl(v3_, 16) ^ v2_;
    v0_ = std::rotl(v0_, 32);
    v2_ += v1_;
    v0_ += v3_;
    v1_ = std::rotl(v1_, 17) ^ v2_;
    v3_ = std::rotl(v3_, 21) ^ v0_;
    v2_ = std::rotl(v2_, 32);
  }

  uint64_t v0_;
  uint64_t v1_;
  uint64_t v2_;
  uint64_t v3_;
};

// The last bytes of a text, fewer than eight, as a number.
inline uint64_t LastBytes(std::string_view text, size_t count) {
  constexpr size_t kHashedBytes = sizeof(uint64_t);
  if (count == 0) return 0;
  uint64_t word = 0;
  const char* const end = text.data() + text.size();
  if (text.size() >= kHashedBytes) {
    // One load, and no call for each length that there is.
    std::memcpy(&word, end - kHashedBytes, kHashedBytes);
    return word >> (kHashedBytes - count) * 8;
  }
  for (size_t i = count; i > 0; --i) {
    word = word << 8 | static_cast<uint8_t>(text[i - 1]);
  }
  return word;
}

// The same over text, as the paper has it.
template <typename Hash>
uint64_t SipHashOf(const HashKey& key, std::string_view text) {
  static_assert(std::endian::native == std::endian::little);
  constexpr size_t kHashedBytes = sizeof(uint64_t);
  Hash hash(key);
  const char* at = text.data();
  size_t left = text.size();
  for (; left >= kHashedBytes; at += kHashedBytes, left -= kHashedBytes) {
    uint64_t word = 0;
    std::memcpy(&word, at, kHashedBytes);
    hash.Add(word);
  }
  return hash.Add(LastBytes(text, left) | uint64_t{text.size()} << 56).Finish();
}

// From getrandom(2), or where that has nothing yet, early in boot, from what
// the kernel gave the process at its start (AT_RANDOM).
HashKey MakeHashKey();

// The same as long as the process lives, and no other's but its children's.
inline const HashKey& ProcessHashKey() {
  static const HashKey kKey = MakeHashKey();
  return kKey;
}

// SipHash-1-3 is what hash tables of Rust, Python and Ruby have: nobody sees
// the hashes, so nobody needs the margin of 2-4.
using TableHash = SipHash<1, 3>;

inline uint64_t HashText(std::string_view text) {
  return SipHashOf<TableHash>(ProcessHashKey(), text);
}

// As many words for each element of a table.
template <std::convertible_to<uint64_t>... Words>
uint64_t HashWords(Words... words) {
  TableHash hash(ProcessHashKey());
  (hash.Add(words), ...);
  return hash.Finish();
}

// Two numbers as one word.
constexpr uint64_t WordOf(uint32_t high, uint32_t low) {
  return uint64_t{high} << 32 | low;
}

// For standard containers. Their order is another one in each process.
struct TextHash {
  using is_transparent = void;  // NOLINT(readability-identifier-naming)
  size_t operator()(std::string_view text) const { return HashText(text); }
};
struct NumberHash {
  size_t operator()(uint64_t number) const { return HashWords(number); }
};

}  // namespace ksym
