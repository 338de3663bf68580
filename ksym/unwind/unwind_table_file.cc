// SPDX-License-Identifier: Apache-2.0
#include "ksym/unwind/unwind_table_file.h"

#include <zlib.h>

#include <array>
#include <bit>
#include <cassert>
#include <cstdint>
#include <cstring>
#include <limits>
#include <utility>

#include "ksym/base/byte_reader.h"
#include "ksym/unwind/arch.h"
#include "ksym/unwind/frame_state.h"

namespace ksym {
namespace {

// Rows are stored as they are in memory.
static_assert(std::endian::native == std::endian::little);

constexpr size_t kMaxKeyBytes = 64;

struct FileHeader {
  std::array<char, 8> magic = {'K', 'S', 'Y', 'M', 'U', 'N', 'W', '\n'};
  uint32_t byte_order = 0x01020304;
  uint32_t version = kUnwindTableVersion;
  uint64_t base = 0;
  uint64_t size = 0;
  uint64_t rows = 0;
  UnwindTableCounts counts;
  std::array<char, kMaxKeyBytes> key = {};
  uint32_t key_size = 0;
  // CRC-32 of all that is before, and of the rows.
  uint32_t checksum = 0;
};
static_assert(sizeof(FileHeader) == 128);

uint32_t Checksum(const FileHeader& header, std::span<const std::byte> rows) {
  const auto* start = reinterpret_cast<const Bytef*>(&header);
  uLong crc = ::crc32_z(0, start, offsetof(FileHeader, checksum));
  crc =
      ::crc32_z(crc, reinterpret_cast<const Bytef*>(rows.data()), rows.size());
  return static_cast<uint32_t>(crc);
}

bool IsValidKind(const UnwindRow& row) {
  switch (GetCfaKind(row)) {
    case CfaKind::kNoInfo:
    case CfaKind::kEnd:
    case CfaKind::kSignal:
    case CfaKind::kUnsupported:
      return row.cfa_offset == 0 && row.fp_offset == 0 && row.rule < 16;
    case CfaKind::kStackPointer:
    case CfaKind::kFramePointer:
    case CfaKind::kExtra:
    case CfaKind::kStackPointerDeref:
    case CfaKind::kFramePointerDeref:
      return true;
    case CfaKind::kPlt:
      return row.cfa_offset >= 0 && row.cfa_offset < 16;
    case CfaKind::kLeafRegister:
    case CfaKind::kReturnRegister:
      return CfaOffsetHigh(row) >= 0 &&
             CfaOffsetHigh(row) < static_cast<int>(kDwarfReturnAddress);
    case CfaKind::kClone:  // no section says so, and only their rows are kept
      return false;
  }
  return false;
}

// What UnwindTable promises about its rows.
bool AreValidRows(const UnwindTable& table) {
  if (table.rows.empty() || table.rows.front().pc != 0) return false;
  for (size_t i = 0; i < table.rows.size(); ++i) {
    const UnwindRow& row = table.rows[i];
    if (row.pc >= table.size || !IsValidKind(row)) return false;
    if (i > 0 && row.pc <= table.rows[i - 1].pc) return false;
  }
  return true;
}

// Says what is wrong with a header; null: nothing.
const char* CheckHeader(const FileHeader& header, std::string_view key) {
  const FileHeader right;
  if (header.magic != right.magic) return "not an unwind table";
  if (header.byte_order != right.byte_order) {
    return "of a machine with another byte order";
  }
  if (header.version != right.version) return "of another version";
  if (header.key_size > kMaxKeyBytes ||
      std::string_view(header.key.data(), header.key_size) != key) {
    return "of something else";
  }
  if (header.size > std::numeric_limits<uint32_t>::max() ||
      header.rows > kMaxUnwindRows) {
    return "too large";
  }
  return nullptr;
}

}  // namespace

std::string EncodeUnwindTable(const UnwindTable& table, std::string_view key) {
  FileHeader header;
  header.base = table.base.value;
  header.size = table.size;
  header.rows = table.rows.size();
  header.counts = table.counts;
  header.key_size =
      static_cast<uint32_t>(key.copy(header.key.data(), kMaxKeyBytes));
  const auto rows = std::as_bytes(std::span(table.rows));
  header.checksum = Checksum(header, rows);
  std::string bytes;
  bytes.reserve(sizeof(header) + rows.size());
  bytes.append(reinterpret_cast<const char*>(&header), sizeof(header));
  bytes.append(reinterpret_cast<const char*>(rows.data()), rows.size());
  return bytes;
}

Result<UnwindTable> DecodeUnwindTable(std::span<const std::byte> bytes,
                                      std::string_view key) {
  FileHeader header;
  if (bytes.size() < sizeof(header)) {
    return Fail(ErrorCode::kCorrupt, "cut off in its header");
  }
  std::memcpy(&header, bytes.data(), sizeof(header));
  if (const char* problem = CheckHeader(header, key)) {
    return Fail(ErrorCode::kCorrupt, problem);
  }
  const auto rows = bytes.subspan(sizeof(header));
  if (rows.size() != header.rows * sizeof(UnwindRow)) {
    return Fail(ErrorCode::kCorrupt, std::to_string(rows.size()) +
                                         " bytes for " +
                                         std::to_string(header.rows) + " rows");
  }
  if (Checksum(header, rows) != header.checksum) {
    return Fail(ErrorCode::kCorrupt, "its checksum is wrong");
  }
  UnwindTable table;
  table.base = {header.base};
  table.size = header.size;
  table.counts = header.counts;
  assert(reinterpret_cast<uintptr_t>(rows.data()) % alignof(UnwindRow) == 0);
  // Not with resize(), which would write zeros first.
  const auto* first = reinterpret_cast<const UnwindRow*>(rows.data());
  table.rows.assign(first, first + header.rows);
  // Whoever can write the file can make its checksum right.
  if (!AreValidRows(table)) {
    return Fail(ErrorCode::kCorrupt, "its rows are not in order");
  }
  return table;
}

}  // namespace ksym
