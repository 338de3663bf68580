#include "ksym/base/blake2b.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace ksym {
namespace {

// Words are read and written as they are in memory.
static_assert(std::endian::native == std::endian::little);

constexpr std::array<uint64_t, 8> kStart = {
    0x6a09e667f3bcc908, 0xbb67ae8584caa73b, 0x3c6ef372fe94f82b,
    0xa54ff53a5f1d36f1, 0x510e527fade682d1, 0x9b05688c2b3e6c1f,
    0x1f83d9abfb41bd6b, 0x5be0cd19137e2179};

// Which words of the block each round mixes (RFC 7693, 2.7). There are twelve
// rounds; the last two are as the first two.
constexpr size_t kRounds = 12;
constexpr std::array<std::array<uint8_t, 16>, 10> kOrder = {
    {{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15},
     {14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3},
     {11, 8, 12, 0, 5, 2, 15, 13, 10, 14, 3, 6, 7, 1, 9, 4},
     {7, 9, 3, 1, 13, 12, 11, 14, 2, 6, 5, 10, 4, 0, 15, 8},
     {9, 0, 5, 7, 2, 4, 10, 15, 14, 1, 11, 12, 6, 8, 3, 13},
     {2, 12, 6, 10, 0, 11, 8, 3, 4, 13, 7, 5, 15, 14, 1, 9},
     {12, 5, 1, 15, 14, 13, 4, 10, 0, 7, 6, 3, 9, 2, 8, 11},
     {13, 11, 7, 14, 12, 1, 3, 9, 5, 0, 15, 4, 8, 6, 2, 10},
     {6, 15, 14, 9, 11, 3, 0, 8, 12, 2, 13, 7, 1, 4, 10, 5},
     {10, 2, 8, 4, 7, 6, 1, 5, 15, 11, 9, 14, 3, 12, 13, 0}}};

void Mix(std::array<uint64_t, 16>& v, std::array<size_t, 4> at, uint64_t x,
         uint64_t y) {
  const auto [a, b, c, d] = at;
  v[a] += v[b] + x;
  v[d] = std::rotr(v[d] ^ v[a], 32);
  v[c] += v[d];
  v[b] = std::rotr(v[b] ^ v[c], 24);
  v[a] += v[b] + y;
  v[d] = std::rotr(v[d] ^ v[a], 16);
  v[c] += v[d];
  v[b] = std::rotr(v[b] ^ v[c], 63);
}

}  // namespace

Blake2b::Blake2b() : state_(kStart) {
  // No key, the result's size, and no tree of hashes.
  state_[0] ^= 0x01010000 ^ kBytes;
}

void Blake2b::Compress(const std::byte* block, bool is_last) {
  std::array<uint64_t, 16> words = {};
  std::memcpy(words.data(), block, kBlockBytes);
  std::array<uint64_t, 16> v = {};
  std::ranges::copy(state_, v.begin());
  std::ranges::copy(kStart, v.begin() + 8);
  v[12] ^= compressed_;
  if (is_last) v[14] = ~v[14];
  for (size_t round = 0; round < kRounds; ++round) {
    const auto& order = kOrder[round % kOrder.size()];
    const auto mix = [&](std::array<size_t, 4> at, size_t pair) {
      Mix(v, at, words[order[2 * pair]], words[order[2 * pair + 1]]);
    };
    mix({0, 4, 8, 12}, 0);
    mix({1, 5, 9, 13}, 1);
    mix({2, 6, 10, 14}, 2);
    mix({3, 7, 11, 15}, 3);
    mix({0, 5, 10, 15}, 4);
    mix({1, 6, 11, 12}, 5);
    mix({2, 7, 8, 13}, 6);
    mix({3, 4, 9, 14}, 7);
  }
  for (size_t i = 0; i < state_.size(); ++i) state_[i] ^= v[i] ^ v[i + 8];
}

void Blake2b::Update(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    // A full block may be the last one, which is compressed differently.
    if (in_block_ == kBlockBytes) {
      compressed_ += kBlockBytes;
      Compress(block_.data(), false);
      in_block_ = 0;
    }
    const size_t n = std::min(bytes.size(), kBlockBytes - in_block_);
    std::memcpy(block_.data() + in_block_, bytes.data(), n);
    in_block_ += n;
    bytes = bytes.subspan(n);
  }
}

std::string Blake2b::Finish() {
  std::fill(block_.begin() + static_cast<std::ptrdiff_t>(in_block_),
            block_.end(), std::byte{0});
  compressed_ += in_block_;
  Compress(block_.data(), true);
  std::string name(kBytes, '\0');
  std::memcpy(name.data(), state_.data(), kBytes);
  return name;
}

}  // namespace ksym
