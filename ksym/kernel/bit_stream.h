#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

namespace ksym {

static_assert(std::endian::native == std::endian::little,
              "multi-byte fields are read in place");

// Bits after the last one that a reader may load (never use).
inline constexpr size_t kBitStreamPadding = 16;

// At least 57 bits from bit `position` on, at the most significant end. Loads
// eight bytes, like the next function.
inline uint64_t PeekBits57(const std::byte* bytes, uint64_t position) {
  uint64_t word = 0;
  std::memcpy(&word, bytes + (position >> 3), sizeof word);
  return __builtin_bswap64(word) << (position & 7);
}

// 32 bits from bit `position` on, first bit of a byte = most significant.
// Loads eight bytes: the storage has kBitStreamPadding bytes after its end.
inline uint32_t PeekBits32(const std::byte* bytes, uint64_t position) {
  return static_cast<uint32_t>(PeekBits57(bytes, position) >> 32);
}

// The next `count` bits (0..32).
inline uint32_t PeekBits(const std::byte* bytes, uint64_t position,
                         unsigned count) {
  const uint64_t window = PeekBits32(bytes, position);
  return static_cast<uint32_t>(window >> (32 - count));
}

class BitWriter {
 public:
  // Appends the low `count` (0..32) bits of `value`, most significant first.
  void Write(uint32_t value, unsigned count) {
    pending_ = (pending_ << count) | value;
    pending_bits_ += count;
    while (pending_bits_ >= 8) {
      pending_bits_ -= 8;
      bytes_.push_back(static_cast<std::byte>(pending_ >> pending_bits_));
    }
  }

  // Fills the last byte with zero bits.
  void Align() {
    if (pending_bits_ != 0) Write(0, 8 - pending_bits_);
  }

  // Whole bytes written; call Align() before.
  const std::vector<std::byte>& bytes() const { return bytes_; }
  size_t byte_count() const { return bytes_.size(); }
  uint64_t bit_count() const { return bytes_.size() * 8 + pending_bits_; }

 private:
  uint64_t pending_ = 0;
  unsigned pending_bits_ = 0;
  std::vector<std::byte> bytes_;
};

}  // namespace ksym
