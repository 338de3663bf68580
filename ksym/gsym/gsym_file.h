// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "ksym/base/address.h"
#include "ksym/base/byte_cursor.h"
#include "ksym/base/result.h"
#include "ksym/gsym/gsym_format.h"

namespace ksym {

// The tables of a GSYM file of either version and byte order, in place.
// Borrows the bytes. Immutable; any number of threads may read.
class GsymFile {
 public:
  // A path as two strings' offsets, and as the strings.
  struct Path {
    uint64_t directory = 0;
    uint64_t base = 0;
  };
  struct File {
    std::string_view directory;
    std::string_view base;
  };

  // Checks the header, every table's place, that addresses rise, that each
  // function's information is within the file, and that the last one's is
  // complete: a file that was cut off is refused. kUnsupported: not GSYM, or a
  // version that is not known here; kCorrupt: it contradicts itself.
  // Cost: one pass over the two address tables, 5 to 16 bytes per function.
  static Result<GsymFile> Parse(std::span<const std::byte> bytes);

  GsymVersion version() const { return version_; }
  std::endian byte_order() const { return order_; }
  // Usually the build-id of the file it was made of; may be empty.
  std::string_view uuid() const { return uuid_; }
  uint32_t function_count() const { return count_; }
  uint32_t file_count() const { return file_count_; }
  size_t address_bytes() const { return address_bytes_; }
  // Sizes of the string offsets in this version.
  size_t string_bytes() const { return string_bytes_; }
  std::span<const std::byte> strings() const { return strings_; }
  std::span<const std::byte> bytes() const { return bytes_; }

  // `index` is below function_count().
  ElfAddress FunctionStart(uint32_t index) const {
    return {base_address_ + AddressOffset(index)};
  }
  // The bytes from a function's information on, to the end of the file.
  ByteCursor FunctionBytes(uint32_t index) const;
  // The first of the functions that start last at or before the address;
  // nothing when all start behind it. O(log functions).
  std::optional<uint32_t> FindLastStart(ElfAddress address) const;

  // Nothing when the offset is outside of the string table. O(length).
  std::optional<std::string_view> String(uint64_t offset) const;
  std::optional<File> FindFile(uint64_t index) const;
  // Whether there is a string at the offset, and of one that is there, whether
  // it is empty. O(1).
  bool HasString(uint64_t offset) const { return offset < strings_.size(); }
  bool IsEmpty(uint64_t offset) const {
    return strings_[static_cast<size_t>(offset)] == std::byte{0};
  }
  // A path by the offsets of its strings, which are there; else nothing. O(1).
  std::optional<Path> FindPath(uint64_t index) const;

 private:
  GsymFile() = default;
  Status ParseHeader1(ByteCursor in);
  Status ParseHeader2(ByteCursor in);
  Status PlaceTables1(size_t strings_offset, size_t strings_size);
  Status PlaceSection(GsymSection type, std::span<const std::byte> bytes);
  Status SetFiles(std::span<const std::byte> bytes);
  Status CheckTables() const;
  Status CheckLastInfo(uint64_t offset) const;

  uint64_t AddressOffset(uint32_t index) const;
  uint32_t CountStartsUpTo(uint64_t offset) const;
  uint64_t InfoOffset(uint32_t index) const;
  ByteCursor Cursor(std::span<const std::byte> bytes) const {
    return ByteCursor(bytes, order_);
  }

  std::span<const std::byte> bytes_;
  std::span<const std::byte> address_offsets_;
  std::span<const std::byte> info_offsets_;
  std::span<const std::byte> files_;      // without their count
  std::span<const std::byte> strings_;    // ends with NUL
  std::span<const std::byte> functions_;  // what info offsets count from
  std::string_view uuid_;
  uint64_t base_address_ = 0;
  uint32_t count_ = 0;
  uint32_t file_count_ = 0;
  GsymVersion version_ = GsymVersion::k1;
  std::endian order_ = std::endian::little;
  uint8_t address_bytes_ = 0;
  uint8_t info_offset_bytes_ = 4;
  uint8_t string_bytes_ = 4;
};

}  // namespace ksym
