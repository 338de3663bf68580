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
// either. Borrows the bytes.
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

  // Whether all numbers were whole, and nothing is behind the last one.
  bool IsDone() const { return ok_ && at_ == end_; }

 private:
  // Bits of a number, and how many they are; 0: it is longer than four bytes,
  // or near the column's end.
  struct Short {
    uint32_t value = 0;
    unsigned bits = 0;
  };

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
