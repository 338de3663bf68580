// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace profd::clickhouse {

// Values as ClickHouse's format RowBinary has them: one after the other, rows
// without anything between them. Numbers are little-endian; a Date is a UInt16
// of days and a DateTime a UInt32 of seconds since 1970.

template <std::unsigned_integral T>
void AppendNumber(T value, std::string& out) {
  for (size_t i = 0; i < sizeof(T); ++i) {
    out += static_cast<char>(static_cast<uint64_t>(value) >> (8 * i));
  }
}

// The length of a text or of an array, in LEB128.
inline void AppendLength(uint64_t length, std::string& out) {
  while (length >= 0x80) {
    out += static_cast<char>(length | 0x80u);
    length >>= 7;
  }
  out += static_cast<char>(length);
}

inline void AppendText(std::string_view text, std::string& out) {
  AppendLength(text.size(), out);
  out += text;
}

}  // namespace profd::clickhouse
