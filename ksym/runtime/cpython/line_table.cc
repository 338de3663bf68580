// SPDX-License-Identifier: Apache-2.0
#include "ksym/runtime/cpython/line_table.h"

#include "ksym/base/byte_reader.h"

namespace ksym {
namespace {

// Kinds of entries, of which 0 to 9 are short forms within a line.
enum EntryKind : uint8_t {
  kOneLine0 = 10,  // up to 12: so many lines further
  kOneLine2 = 12,
  kNoColumns = 13,
  kLong = 14,
  kNoLocation = 15,
};

// Six bits a byte, the lowest first; bit 6 says that more follow.
uint64_t ReadVarint(ByteReader& reader) {
  constexpr unsigned kMaxBits = 36;
  uint64_t value = 0;
  for (unsigned shift = 0; shift < kMaxBits; shift += 6) {
    const auto byte = reader.Read<uint8_t>();
    value |= uint64_t{byte & 0x3fu} << shift;
    if ((byte & 0x40u) == 0) return value;
  }
  reader.Seek(SIZE_MAX);  // malformed: no line is as far away
  return 0;
}

// The lowest bit is the sign.
int64_t ReadSignedVarint(ByteReader& reader) {
  const uint64_t value = ReadVarint(reader);
  const auto magnitude = static_cast<int64_t>(value >> 1);
  return (value & 1) != 0 ? -magnitude : magnitude;
}

std::optional<uint32_t> AsLine(int64_t line) {
  if (line <= 0 || line > INT32_MAX) return std::nullopt;
  return static_cast<uint32_t>(line);
}

// Each pair's lines are in force from behind its code on.
std::optional<uint32_t> LineByDeltas(ByteReader reader, uint32_t first_line,
                                     uint64_t at) {
  int64_t line = first_line;
  uint64_t code = 0;
  while (!reader.AtEnd()) {
    code += reader.Read<uint8_t>();
    const auto step = static_cast<int8_t>(reader.Read<uint8_t>());
    if (!reader.ok() || code > at) break;
    line += step;
  }
  return AsLine(line);
}

// Each pair is of the code that begins where the one before ends.
std::optional<uint32_t> LineByRanges(ByteReader reader, uint32_t first_line,
                                     uint64_t at) {
  constexpr int8_t kNoLine = -128;
  int64_t line = first_line;
  uint64_t end = 0;
  while (!reader.AtEnd()) {
    end += reader.Read<uint8_t>();
    const auto step = static_cast<int8_t>(reader.Read<uint8_t>());
    if (!reader.ok()) return std::nullopt;
    if (step != kNoLine) line += step;
    if (at < end) return step == kNoLine ? std::nullopt : AsLine(line);
  }
  return std::nullopt;
}

std::optional<uint32_t> LineByLocations(ByteReader reader, uint32_t first_line,
                                        uint32_t index) {
  int64_t line = first_line;
  uint64_t begin = 0;  // of the entry
  while (!reader.AtEnd()) {
    const auto head = reader.Read<uint8_t>();
    if ((head & 0x80u) == 0) return std::nullopt;
    const uint64_t end = begin + (head & 7u) + 1;
    const auto kind = static_cast<uint8_t>(head >> 3 & 15);
    if (kind == kLong) {
      line += ReadSignedVarint(reader);
      for (int i = 0; i < 3; ++i) ReadVarint(reader);  // the end, the columns
    } else if (kind == kNoColumns) {
      line += ReadSignedVarint(reader);
    } else if (kind >= kOneLine0 && kind <= kOneLine2) {
      line += kind - kOneLine0;
      reader.ReadBytes(2);  // the columns
    } else if (kind < kOneLine0) {
      reader.ReadBytes(1);  // the columns
    }
    if (!reader.ok()) return std::nullopt;
    if (index >= begin && index < end) {
      return kind == kNoLocation ? std::nullopt : AsLine(line);
    }
    begin = end;
  }
  return std::nullopt;
}

}  // namespace

std::optional<uint32_t> CpythonLineAt(const CpythonLines& lines,
                                      uint32_t index) {
  const ByteReader reader(lines.table);
  switch (lines.form) {
    case CpythonLayout::LineTable::kDeltas:
      return LineByDeltas(reader, lines.first_line, uint64_t{index} * 2);
    case CpythonLayout::LineTable::kRanges:
      return LineByRanges(reader, lines.first_line, uint64_t{index} * 2);
    case CpythonLayout::LineTable::kLocations:
      break;
  }
  return LineByLocations(reader, lines.first_line, index);
}

}  // namespace ksym
