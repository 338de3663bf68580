// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

namespace ksym {

// Bounds-checked cursor over untrusted bytes of either byte order, for loops
// that read millions of fields: what ByteReader is, with a short path for
// one-byte LEB128 numbers and with C strings. After a read past the end every
// read returns zero and ok() is false for good. Borrows the bytes.
class ByteCursor {
 public:
  ByteCursor() = default;
  explicit ByteCursor(std::span<const std::byte> bytes,
                      std::endian order = std::endian::little)
      : begin_(bytes.data()),
        at_(bytes.data()),
        end_(bytes.data() + bytes.size()),
        swap_(order != std::endian::native) {}

  bool ok() const { return ok_; }
  size_t offset() const { return static_cast<size_t>(at_ - begin_); }
  size_t remaining() const { return static_cast<size_t>(end_ - at_); }
  bool AtEnd() const { return at_ == end_; }

  template <std::unsigned_integral T>
  T Read() {
    if (remaining() < sizeof(T)) return Fail<T>();
    T value = 0;
    std::memcpy(&value, at_, sizeof(T));
    at_ += sizeof(T);
    return swap_ ? Swapped(value) : value;
  }

  // An unsigned number of 1, 2, 4 or 8 bytes.
  uint64_t ReadSized(size_t size) {
    switch (size) {
      case 1:
        return Read<uint8_t>();
      case 2:
        return Read<uint16_t>();
      case 4:
        return Read<uint32_t>();
      default:
        return Read<uint64_t>();
    }
  }

  uint64_t ReadUleb128() {
    if (at_ != end_ && static_cast<uint8_t>(*at_) < 0x80) {
      return static_cast<uint8_t>(*at_++);
    }
    return ReadLongUleb128();
  }

  int64_t ReadSleb128() {
    // Bit 6 of the last byte is the sign.
    if (at_ != end_ && static_cast<uint8_t>(*at_) < 0x80) {
      const auto byte = static_cast<uint8_t>(*at_++);
      return static_cast<int8_t>(static_cast<uint8_t>(byte << 1)) >> 1;
    }
    return ReadLongSleb128();
  }

  void SkipLeb128() {
    while (at_ != end_) {
      if (static_cast<uint8_t>(*at_++) < 0x80) return;
    }
    Fail<uint8_t>();
  }

  void Skip(uint64_t n) {
    if (n > remaining()) {
      Fail<uint8_t>();
    } else {
      at_ += n;
    }
  }

  // A view of the next n bytes; empty and !ok() when there are fewer.
  std::span<const std::byte> ReadBytes(uint64_t n) {
    const std::byte* from = at_;
    Skip(n);
    return ok_ ? std::span(from, static_cast<size_t>(n))
               : std::span<const std::byte>();
  }

  // Up to the next NUL, which is skipped; !ok() when there is none.
  std::string_view ReadCString() {
    const void* nul = AtEnd() ? nullptr : std::memchr(at_, 0, remaining());
    if (nul == nullptr) {
      Fail<uint8_t>();
      return {};
    }
    const auto* from = reinterpret_cast<const char*>(at_);
    const auto* end = static_cast<const char*>(nul);
    at_ = static_cast<const std::byte*>(nul) + 1;
    return {from, static_cast<size_t>(end - from)};
  }

  // Moves to an absolute offset; !ok() when it lies past the end.
  void Seek(uint64_t offset) {
    at_ = begin_;
    Skip(offset);
  }

 private:
  template <typename T>
  static T Swapped(T value) {
    if constexpr (sizeof(T) == 2) return __builtin_bswap16(value);
    if constexpr (sizeof(T) == 4) return __builtin_bswap32(value);
    if constexpr (sizeof(T) == 8) return __builtin_bswap64(value);
    return value;
  }

  // Moves to the end, so that every later read fails as well.
  template <typename T>
  T Fail() {
    ok_ = false;
    at_ = end_;
    return 0;
  }

  // Most numbers are of one byte, whose path is to stay small.
  [[gnu::noinline]] int64_t ReadLongSleb128() {
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 64 && at_ != end_; shift += 7) {
      const auto byte = static_cast<uint8_t>(*at_++);
      value |= static_cast<uint64_t>(byte & 0x7fu) << shift;
      if ((byte & 0x80u) != 0) continue;
      if ((byte & 0x40u) != 0 && shift + 7 < 64) {
        value |= ~uint64_t{0} << (shift + 7);
      }
      return static_cast<int64_t>(value);
    }
    return Fail<uint8_t>();
  }

  [[gnu::noinline]] uint64_t ReadLongUleb128() {
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 64 && at_ != end_; shift += 7) {
      const auto byte = static_cast<uint8_t>(*at_++);
      const uint64_t bits = byte & 0x7fu;
      if (shift == 63 && bits > 1) break;
      value |= bits << shift;
      if ((byte & 0x80u) == 0) return value;
    }
    return Fail<uint8_t>();
  }

  const std::byte* begin_ = nullptr;
  const std::byte* at_ = nullptr;
  const std::byte* end_ = nullptr;
  bool ok_ = true;
  bool swap_ = false;
};

}  // namespace ksym
