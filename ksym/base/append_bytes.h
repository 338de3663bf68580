// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string>

namespace ksym {

// Appends to bytes that are kept as a text, as those of files and requests are.

template <std::unsigned_integral T>
void AppendLittleEndian(T value, std::string& out) {
  for (size_t i = 0; i < sizeof(T); ++i) {
    out += static_cast<char>(static_cast<uint64_t>(value) >> (8 * i));
  }
}

inline void AppendUleb128(uint64_t value, std::string& out) {
  while (value >= 0x80) {
    out += static_cast<char>(value | 0x80u);
    value >>= 7;
  }
  out += static_cast<char>(value);
}

}  // namespace ksym
