// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string_view>

namespace ksym {

// Bounds-checked cursor over untrusted little-endian bytes. After a read past
// the end every read returns zero and ok() is false for good, so a parser can
// read a whole record and test once. Borrows the bytes.
class ByteReader {
 public:
  explicit ByteReader(std::span<const std::byte> bytes) : bytes_(bytes) {}

  bool ok() const { return ok_; }
  size_t offset() const { return offset_; }
  size_t remaining() const { return bytes_.size() - offset_; }
  bool AtEnd() const { return offset_ == bytes_.size(); }

  template <std::unsigned_integral T>
  T Read() {
    T value = 0;
    if (const std::byte* p = Take(sizeof(T))) std::memcpy(&value, p, sizeof(T));
    return value;
  }

  // Unsigned LEB128, at most 64 bits of value.
  uint64_t ReadUleb128() {
    // Nearly all numbers have one byte.
    if (ok_ && !AtEnd() && bytes_[offset_] < std::byte{0x80}) {
      return static_cast<uint64_t>(bytes_[offset_++]);
    }
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      const auto byte = Read<uint8_t>();
      const uint64_t bits = byte & 0x7fu;
      if (shift == 63 && bits > 1) break;
      value |= bits << shift;
      if ((byte & 0x80u) == 0) return value;
    }
    ok_ = false;
    return 0;
  }

  int64_t ReadSleb128() {
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      const auto byte = Read<uint8_t>();
      value |= static_cast<uint64_t>(byte & 0x7fu) << shift;
      if ((byte & 0x80u) != 0) continue;
      if ((byte & 0x40u) != 0 && shift + 7 < 64) {
        value |= ~uint64_t{0} << (shift + 7);
      }
      return static_cast<int64_t>(value);
    }
    ok_ = false;
    return 0;
  }

  // A view of the next n bytes; empty and !ok() when there are fewer.
  std::span<const std::byte> ReadBytes(size_t n) {
    const std::byte* p = Take(n);
    return p == nullptr ? std::span<const std::byte>() : std::span(p, n);
  }

  std::string_view ReadString(size_t n) {
    const auto bytes = ReadBytes(n);
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }

  // Moves to an absolute offset; false and !ok() when it lies past the end.
  bool Seek(size_t offset) {
    if (offset > bytes_.size()) {
      ok_ = false;
      return false;
    }
    offset_ = offset;
    return true;
  }

 private:
  const std::byte* Take(size_t n) {
    if (!ok_ || n > remaining()) {
      ok_ = false;
      return nullptr;
    }
    const std::byte* p = bytes_.data() + offset_;
    offset_ += n;
    return p;
  }

  std::span<const std::byte> bytes_;
  size_t offset_ = 0;
  bool ok_ = true;
};

// a + b and a * b, or nothing when they do not fit 64 bits.
inline std::optional<uint64_t> CheckedAdd(uint64_t a, uint64_t b) {
  uint64_t sum = 0;
  if (__builtin_add_overflow(a, b, &sum)) return std::nullopt;
  return sum;
}
inline std::optional<uint64_t> CheckedMul(uint64_t a, uint64_t b) {
  uint64_t product = 0;
  if (__builtin_mul_overflow(a, b, &product)) return std::nullopt;
  return product;
}

}  // namespace ksym
