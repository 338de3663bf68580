// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

#include "daemon/history/column_fields.h"
#include "ksym/base/byte_cursor.h"

namespace profd::history {

// Reads a column's numbers, as ksym::ByteCursor would. Those of one byte, and
// of two to four, have paths of their own: most numbers of a column are of
// either. So have several of one or of two bytes in a row. Borrows the bytes.
class NumberReader {
 public:
  explicit NumberReader(std::string_view column)
      : at_(column.data()), end_(column.data() + column.size()) {}

  // The next number, which is the one before it plus what stands there, or
  // counts back from `place`.
  template <Code kCode>
  uint64_t Read(uint64_t before, size_t place) {
    if constexpr (kCode == Code::kStep) {
      return before + static_cast<uint64_t>(ReadSigned());
    } else if constexpr (kCode == Code::kDistance) {
      // A distance beyond the beginning wraps, and is refused as too large.
      return place - ReadUnsigned();
    } else {
      return ReadUnsigned();
    }
  }

  // Reads the next numbers where they are several of one size, and calls `put`
  // with each of them; how many there were. There are `left` places for
  // numbers, the first of which is `place`; `before` is the number before.
  template <Code kCode, typename Put>
  size_t ReadAlike(uint64_t before, size_t place, size_t left, const Put& put) {
    uint64_t word = 0;
    if (left < sizeof(word) ||
        end_ - at_ < static_cast<ptrdiff_t>(sizeof(word))) {
      return 0;
    }
    word = WordAt(at_);
    const uint64_t goes_on = word & kTopBits;
    if (goes_on == 0) return PutAlike<kCode, 8>(word, before, place, put);
    if (goes_on != kTopBitsOfPairs) return 0;
    // The seven bits of each first byte, and those of the second above them.
    word = (word & 0x007f'007f'007f'007f) | (word & 0x7f00'7f00'7f00'7f00) >> 1;
    return PutAlike<kCode, 16>(word, before, place, put);
  }

  // Whether all numbers were whole, and nothing is behind the last one.
  bool IsDone() const { return ok_ && at_ == end_; }

 private:
  // Bits of a number, and how many they are; 0: it is longer than four bytes,
  // or near the column's end.
  struct Short {
    uint32_t value = 0;
    unsigned bits = 0;
  };

  // The top bit says that a number goes on: in any byte of a word, and in the
  // first byte of each pair.
  static constexpr uint64_t kTopBits = 0x8080'8080'8080'8080;
  static constexpr uint64_t kTopBitsOfPairs = 0x0080'0080'0080'0080;

  // The byte of the lowest address is the lowest one.
  static uint64_t WordAt(const char* at) {
    uint64_t word = 0;
    std::memcpy(&word, at, sizeof(word));
    if constexpr (std::endian::native == std::endian::big) {
      word = __builtin_bswap64(word);
    }
    return word;
  }

  // The word is of numbers that take so many of its bits each, of which every
  // eighth is none of the number's.
  template <Code kCode, unsigned kBits, typename Put>
  size_t PutAlike(uint64_t word, uint64_t before, size_t place,
                  const Put& put) {
    constexpr size_t kNumbers = 64 / kBits;
    constexpr unsigned kUsedBits = kBits / 8 * 7;
    at_ += sizeof(word);
    for (size_t i = 0; i < kNumbers; ++i) {
      const auto number = static_cast<uint32_t>(word >> i * kBits) &
                          ((uint32_t{1} << kUsedBits) - 1);
      if constexpr (kCode == Code::kStep) {
        const int64_t step = Signed(number, kUsedBits);
        before += static_cast<uint64_t>(step);
      } else if constexpr (kCode == Code::kDistance) {
        before = place + i - number;
      } else {
        before = number;
      }
      put(before);
    }
    return kNumbers;
  }

  bool IsOneByte() const {
    return at_ != end_ && (static_cast<uint8_t>(*at_) & 0x80u) == 0;
  }
  uint8_t TakeByte() { return static_cast<uint8_t>(*at_++); }

  // Without a branch for each byte. All but the last byte have their top bit.
  Short TakeShort() {
    uint32_t word = 0;
    if (end_ - at_ < static_cast<ptrdiff_t>(sizeof(word))) return {};
    std::memcpy(&word, at_, sizeof(word));
    if constexpr (std::endian::native == std::endian::big) {
      word = __builtin_bswap32(word);
    }
    const uint32_t ends = ~word & 0x8080'8080u;
    if (ends == 0) return {};
    const auto bytes = static_cast<unsigned>(std::countr_zero(ends) + 1) / 8;
    at_ += bytes;
    // From the first byte up to the one that ends it.
    word &= ends ^ (ends - 1);
    return {.value = (word & 0x7fu) | (word >> 1 & 0x3f80u) |
                     (word >> 2 & 0x1f'c000u) | (word >> 3 & 0xfe0'0000u),
            .bits = 7 * bytes};
  }

  ksym::ByteCursor Rest() const {
    return ksym::ByteCursor(std::as_bytes(std::span(at_, end_)));
  }
  void GoOnBehind(const ksym::ByteCursor& rest) {
    at_ += rest.offset();
    ok_ = ok_ && rest.ok();
  }

  [[gnu::noinline]] uint64_t ReadAnyUnsigned() {
    ksym::ByteCursor rest = Rest();
    const uint64_t value = rest.ReadUleb128();
    GoOnBehind(rest);
    return value;
  }

  [[gnu::noinline]] int64_t ReadAnySigned() {
    ksym::ByteCursor rest = Rest();
    const int64_t value = rest.ReadSleb128();
    GoOnBehind(rest);
    return value;
  }

  uint64_t ReadUnsigned() {
    if (IsOneByte()) return TakeByte();
    const Short number = TakeShort();
    return number.bits != 0 ? number.value : ReadAnyUnsigned();
  }

  int64_t ReadSigned() {
    // The last of its bits is the sign.
    if (IsOneByte()) return Signed(TakeByte(), 7);
    const Short number = TakeShort();
    return number.bits != 0 ? Signed(number.value, number.bits)
                            : ReadAnySigned();
  }

  static int32_t Signed(uint32_t value, unsigned bits) {
    const unsigned unused = 32 - bits;
    return static_cast<int32_t>(value << unused) >> unused;
  }

  const char* at_;
  const char* end_;
  bool ok_ = true;
};

}  // namespace profd::history
