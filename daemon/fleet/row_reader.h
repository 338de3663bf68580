// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "ksym/base/byte_reader.h"
#include "ksym/base/result.h"

namespace profd::fleet {

// Reads rows in ClickHouse's RowBinary, column by column in the order of the
// SELECT. Nothing of them is believed: after what does not fit every read gives
// zero, and Finish() fails. Borrows the bytes.
class RowReader {
 public:
  explicit RowReader(std::string_view rows)
      : reader_(std::as_bytes(std::span(rows))) {}

  // Whether another row begins.
  bool HasRow() const { return reader_.ok() && !is_wrong_ && !reader_.AtEnd(); }

  // UInt8 to UInt64; DateTime is UInt32.
  template <std::unsigned_integral T>
  T Number() {
    return reader_.Read<T>();
  }
  // String.
  std::string_view Text() {
    const uint64_t bytes = reader_.ReadUleb128();
    return reader_.ReadString(bytes);
  }
  // How many elements of an Array follow: never more than there are bytes, each
  // element having one at least.
  size_t List() {
    const uint64_t elements = reader_.ReadUleb128();
    if (elements <= reader_.remaining()) return elements;
    is_wrong_ = true;
    return 0;
  }
  // For what a row may not say.
  void Refuse() { is_wrong_ = true; }

  // kCorrupt: a row was cut off, or refused.
  ksym::Status Finish() const {
    if (reader_.ok() && !is_wrong_) return {};
    return ksym::Fail(ksym::ErrorCode::kCorrupt,
                      "the database's answer is damaged");
  }

 private:
  ksym::ByteReader reader_;
  bool is_wrong_ = false;
};

}  // namespace profd::fleet
