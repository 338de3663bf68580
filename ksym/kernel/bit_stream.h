// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>

#include "ksym/base/heap_bytes.h"

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
  // Where the next bits go. `bits` (0..7) of them, at the top of `pending`, are
  // not in the bytes yet.
  struct Place {
    std::byte* at = nullptr;
    std::byte* end = nullptr;
    uint64_t pending = 0;
    unsigned bits = 0;
  };

 public:
  BitWriter() = default;
  // Starts after the first `kept` of the bytes, which there may be fewer of;
  // the others are room.
  BitWriter(HeapBytes bytes, size_t kept) : bytes_(std::move(bytes)) {
    if (bytes_.size() < kept) bytes_.Resize(kept);
    place_.at = bytes_.data() + kept;
    place_.end = bytes_.data() + bytes_.size();
  }
  BitWriter(BitWriter&& other) noexcept { *this = std::move(other); }
  BitWriter& operator=(BitWriter&& other) noexcept {
    bytes_ = std::exchange(other.bytes_, {});
    place_ = std::exchange(other.place_, {});
    return *this;
  }

  // Many writes in a row: where to write stays in registers, while each byte
  // written could be part of the writer for all that the compiler knows. The
  // writer must not be used before the burst has ended.
  class Burst {
   public:
    explicit Burst(BitWriter& writer)
        : writer_(writer), place_(writer.place_) {}
    ~Burst() { writer_.place_ = place_; }
    Burst(const Burst&) = delete;
    Burst& operator=(const Burst&) = delete;

    // As BitWriter::Write.
    void Write(uint32_t value, unsigned count) {
      if (place_.end - place_.at < kWord) [[unlikely]]
        place_ = writer_.Grown(place_);
      // No branch on what is full: nothing could predict it.
      place_.bits += count;
      place_.pending |= uint64_t{value} << (8 * kWord - 1 - place_.bits) << 1;
      const uint64_t word = __builtin_bswap64(place_.pending);
      std::memcpy(place_.at, &word, sizeof word);
      place_.at += place_.bits / 8;
      place_.pending <<= place_.bits & ~7u;
      place_.bits &= 7;
    }

   private:
    BitWriter& writer_;
    Place place_;
  };

  // Room for so many bits more.
  void Reserve(uint64_t bits) { Enlarge(bits / 8 + 2 * kWord); }

  // Appends the low `count` (0..32) bits of `value`, most significant first;
  // its other bits are zero.
  void Write(uint32_t value, unsigned count) {
    Burst(*this).Write(value, count);
  }

  // Fills the last byte with zero bits.
  void Align() { Write(0, -place_.bits % 8); }

  // From the first byte on, also of those handed in; whole ones after Align().
  size_t byte_count() const {
    return static_cast<size_t>(place_.at - bytes_.data());
  }
  uint64_t bit_count() const {
    return uint64_t{byte_count()} * 8 + place_.bits;
  }

  // Everything, the last byte filled up. The writer is used up.
  HeapBytes Take() && {
    Align();
    bytes_.Resize(byte_count());
    return std::move(bytes_);
  }

 private:
  static constexpr ptrdiff_t kWord = sizeof(uint64_t);

  // At least so many bytes from the place on.
  void Enlarge(size_t room) {
    const size_t used = byte_count();
    bytes_.Resize(used + room);
    place_.at = bytes_.data() + used;
    place_.end = bytes_.data() + bytes_.size();
  }
  [[gnu::noinline]] Place Grown(Place place) {
    place_ = place;
    Enlarge(byte_count() + 4096);
    return place_;
  }

  HeapBytes bytes_;
  Place place_;
};

}  // namespace ksym
