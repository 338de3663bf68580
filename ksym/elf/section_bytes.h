// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>

#include "ksym/base/result.h"
#include "ksym/elf/byte_source.h"
#include "ksym/elf/elf_image.h"

namespace ksym {

// A compressed section that is larger than this when unpacked is kLimit, where
// the caller does not say otherwise.
inline constexpr size_t kMaxUnpackedBytes = size_t{128} << 20;
// A larger one has to have a part of this size in the file: debug data become
// three to ten times as large, and what claims more would take memory that is
// out of proportion to the file.
inline constexpr uint64_t kMaxTimesPacked = 32;

// The bytes of one section: those of the file or, where the section is
// compressed, unpacked ones in memory. Borrows the file.
class SectionBytes {
 public:
  // Unpacks zlib's and Zstandard's formats (System V ABI, "Section
  // Compression"), which costs memory as it goes and not as the header claims.
  // kCorrupt: it is not what its header says; kUnsupported: another format;
  // kLimit.
  static Result<SectionBytes> Open(const ByteSource& file,
                                   const ElfImage& image,
                                   const ElfSection& section,
                                   uint64_t max_bytes = kMaxUnpackedBytes);

  // The same of a section ".zdebug_*", as binutils up to 2.25 compressed it:
  // "ZLIB", the size in 8 bytes of which the first is the highest, and zlib's
  // format.
  static Result<SectionBytes> OpenOldCompressed(
      const ByteSource& file, const ElfSection& section,
      uint64_t max_bytes = kMaxUnpackedBytes);

  uint64_t size() const { return size_; }
  bool is_unpacked() const { return is_unpacked_; }
  // The unpacked bytes; empty for a section that is not compressed.
  ByteSource TakeUnpacked() && { return std::move(unpacked_); }
  std::string TakeUnpackedText() && { return std::move(unpacked_).TakeText(); }

  // Where they are in the file's mapping; empty where it has none, or has not
  // all of them, or they are unpacked.
  std::span<const std::byte> Mapped() const;

  // As ByteSource has them; offsets are within the section.
  Status ReadAt(uint64_t offset, std::span<std::byte> out) const;
  Result<size_t> ReadSomeAt(uint64_t offset, std::span<std::byte> out) const;

 private:
  SectionBytes(const ByteSource& file, uint64_t file_offset, uint64_t size)
      : file_(&file), file_offset_(file_offset), size_(size) {}

  struct Packed;
  Status Unpack(const Packed& packed, uint64_t max_bytes);
  const ByteSource& source() const { return is_unpacked_ ? unpacked_ : *file_; }

  const ByteSource* file_;
  ByteSource unpacked_ = ByteSource::OfMemory({});
  bool is_unpacked_ = false;
  uint64_t file_offset_ = 0;
  uint64_t size_ = 0;
};

}  // namespace ksym
