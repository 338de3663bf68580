// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace ksym {

// Reads the numbers of V8's tables about code (src/base/vlq.h). Borrows the
// bytes.
class V8NumberReader {
 public:
  explicit V8NumberReader(std::span<const std::byte> bytes) : bytes_(bytes) {}

  bool is_at_end() const { return next_ == bytes_.size(); }

  // Seven bits in each byte, the lowest first; the highest bit: more follows.
  std::optional<uint64_t> Number() {
    constexpr unsigned kBits = 64;
    uint64_t number = 0;
    for (unsigned shift = 0; shift < kBits && !is_at_end(); shift += 7) {
      const auto byte = std::to_integer<uint64_t>(bytes_[next_++]);
      number |= (byte & 0x7f) << shift;
      if ((byte & 0x80) == 0) return number;
    }
    return std::nullopt;
  }

  // The same with the sign in the lowest bit.
  std::optional<uint64_t> Difference() {
    const auto number = Number();
    if (!number) return std::nullopt;
    return *number >> 1 ^ (0 - (*number & 1));
  }

 private:
  std::span<const std::byte> bytes_;
  size_t next_ = 0;
};

}  // namespace ksym
