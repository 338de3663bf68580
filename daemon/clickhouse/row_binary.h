// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "ksym/base/append_bytes.h"

namespace profd::clickhouse {

// Values as ClickHouse's format RowBinary has them: one after the other, rows
// without anything between them. Numbers are little-endian; a Date is a UInt16
// of days and a DateTime a UInt32 of seconds since 1970. Texts and arrays have
// their length in LEB128 in front.

using ksym::AppendLittleEndian;
using ksym::AppendUleb128;

inline void AppendText(std::string_view text, std::string& out) {
  AppendUleb128(text.size(), out);
  out += text;
}

}  // namespace profd::clickhouse
