// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

namespace ksym {

inline constexpr uint32_t kLastCharacter = 0x10ffff;

// Whether the number stands for a character of Unicode: surrogates do not.
constexpr bool IsCharacter(uint64_t c) {
  return c < 0xd800 || (c >= 0xe000 && c <= kLastCharacter);
}

// Appends a character, for which IsCharacter() holds, in UTF-8.
inline void AppendUtf8(uint32_t c, std::string& out) {
  const auto add = [&out](uint32_t byte) { out += static_cast<char>(byte); };
  const auto add_six_bits = [&](uint32_t from) {
    add(0x80 | (c >> from & 0x3f));
  };
  if (c < 0x80) {
    add(c);
  } else if (c < 0x800) {
    add(0xc0 | c >> 6);
  } else if (c < 0x10000) {
    add(0xe0 | c >> 12);
  } else {
    add(0xf0 | c >> 18);
    add_six_bits(12);
  }
  if (c >= 0x800) add_six_bits(6);
  if (c >= 0x80) add_six_bits(0);
}

}  // namespace ksym
