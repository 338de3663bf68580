// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace ksym {

// How many ULEB128 or SLEB128 numbers, or varints of protobuf, end in these
// bytes: the last byte of each, and no other, has not the highest bit.
inline size_t CountLeb128(std::string_view bytes) {
  constexpr uint64_t kTopBits = 0x8080'8080'8080'8080;
  constexpr uint64_t kLowBits = 0x0101'0101'0101'0101;
  size_t count = 0;
  uint64_t word = 0;
  for (; bytes.size() >= sizeof(word); bytes.remove_prefix(sizeof(word))) {
    std::memcpy(&word, bytes.data(), sizeof(word));
    // The product adds up the ones of all bytes in the highest one.
    count += ((~word & kTopBits) >> 7) * kLowBits >> 56;
  }
  for (const char byte : bytes) {
    count += (static_cast<unsigned char>(byte) & 0x80u) == 0 ? 1 : 0;
  }
  return count;
}

}  // namespace ksym
