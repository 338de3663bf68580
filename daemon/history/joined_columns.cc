// SPDX-License-Identifier: Apache-2.0
#include "daemon/history/joined_columns.h"

#include <cstddef>
#include <cstdint>

#include "ksym/base/byte_reader.h"
#include "ksym/base/byte_writer.h"

namespace profd::history {

std::string JoinColumns(std::span<const std::string> columns) {
  ksym::ByteWriter writer;
  for (const std::string& column : columns) {
    writer.WriteUleb128(column.size());
    writer.WriteText(column);
  }
  const auto bytes = writer.bytes();
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

ksym::Status SplitColumns(std::string_view text,
                          std::span<std::string_view> columns) {
  ksym::ByteReader reader(std::as_bytes(std::span(text)));
  for (std::string_view& column : columns) {
    const uint64_t size = reader.ReadUleb128();
    column = reader.ReadString(size);
  }
  if (!reader.ok() || !reader.AtEnd()) {
    return ksym::Fail(ksym::ErrorCode::kCorrupt,
                      "columns do not fill their record");
  }
  return {};
}

}  // namespace profd::history
