#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>
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

// The eight bytes from here on, the first one most significant.
inline uint64_t LoadBigEndian(const std::byte* bytes) {
  uint64_t word = 0;
  std::memcpy(&word, bytes, sizeof word);
  return __builtin_bswap64(word);
}

// Appends bits to bytes that a caller may hand in and takes back, so that a
// stream need not be copied to where it belongs.
class BitWriter {
 public:
  BitWriter() = default;
  // Starts after the bytes.
  explicit BitWriter(std::vector<std::byte> bytes)
      : bytes_(std::move(bytes)), used_(bytes_.size()) {}

  // Room for so many bits more.
  void Reserve(uint64_t bits) {
    bytes_.resize(used_ + bits / 8 + 2 * sizeof(uint64_t));
  }

  // Appends the low `count` (0..32) bits of `value`, most significant first.
  void Write(uint32_t value, unsigned count) {
    pending_ = (pending_ << count) | value;
    pending_bits_ += count;
    if (pending_bits_ >= 32) {
      pending_bits_ -= 32;
      Put(static_cast<uint32_t>(pending_ >> pending_bits_));
    }
  }

  // Fills the last byte with zero bits.
  void Align() { Write(0, -pending_bits_ % 8); }

  // From the first byte on, also of those handed in; whole ones after Align().
  size_t byte_count() const { return used_ + pending_bits_ / 8; }
  uint64_t bit_count() const { return uint64_t{used_} * 8 + pending_bits_; }

  // Everything, the last byte filled up. The writer is used up.
  std::vector<std::byte> Take() && {
    Align();
    const size_t size = byte_count();
    if (pending_bits_ > 0) {
      Put(static_cast<uint32_t>(pending_ << (32 - pending_bits_)));
    }
    bytes_.resize(size);
    return std::move(bytes_);
  }

 private:
  void Put(uint32_t word) {
    if (bytes_.size() - used_ < sizeof word) [[unlikely]] {
      // Doubling would hold three times the stream while it is copied.
      bytes_.resize(used_ + used_ / 4 + 4096);
    }
    word = __builtin_bswap32(word);
    std::memcpy(bytes_.data() + used_, &word, sizeof word);
    used_ += sizeof word;
  }

  uint64_t pending_ = 0;
  unsigned pending_bits_ = 0;
  std::vector<std::byte> bytes_;
  size_t used_ = 0;
};

}  // namespace ksym
