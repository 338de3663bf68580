// SPDX-License-Identifier: Apache-2.0
#include "ksym/elf/section_bytes.h"

#include <elf.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "ksym/base/byte_reader.h"
#include "ksym/elf/unpacker.h"

namespace ksym {
namespace {

constexpr size_t kBlockBytes = size_t{64} << 10;

constexpr std::string_view kOldMagic = "ZLIB";

Status CheckSize(uint64_t size, uint64_t packed_size, uint64_t max_bytes) {
  const std::string what =
      "a compressed section has " + std::to_string(size) + " bytes, ";
  if (size > max_bytes) {
    return Fail(ErrorCode::kLimit,
                what + "more than " + std::to_string(max_bytes));
  }
  if (size > kMaxUnpackedBytes && size / kMaxTimesPacked > packed_size) {
    return Fail(ErrorCode::kLimit, what + "more than " +
                                       std::to_string(kMaxTimesPacked) +
                                       " times those in the file");
  }
  return {};
}

}  // namespace

// What a header says of the bytes behind it.
struct SectionBytes::Packed {
  uint32_t type = 0;    // ELFCOMPRESS_*
  uint64_t size = 0;    // unpacked
  uint64_t offset = 0;  // in the file
  uint64_t packed_size = 0;

  static Result<Packed> Read(const ByteSource& file, ElfClass elf_class,
                             const ElfSection& section);
  static Result<Packed> ReadOld(const ByteSource& file,
                                const ElfSection& section);
  Result<std::string> Unpack(const ByteSource& file) const;
};

// Elf32_Chdr and Elf64_Chdr.
Result<SectionBytes::Packed> SectionBytes::Packed::Read(
    const ByteSource& file, ElfClass elf_class, const ElfSection& section) {
  const bool is64 = elf_class == ElfClass::k64;
  const size_t header_bytes = is64 ? sizeof(Elf64_Chdr) : sizeof(Elf32_Chdr);
  if (section.size < header_bytes) {
    return Fail(ErrorCode::kCorrupt, "a compressed section has no header");
  }
  std::array<std::byte, sizeof(Elf64_Chdr)> bytes = {};
  const auto part = std::span(bytes).first(header_bytes);
  const auto read = file.ReadAt(section.file_offset, part);
  if (!read) return Fail(read.error());
  ByteReader in(part);
  Packed packed;
  packed.type = in.Read<uint32_t>();
  if (is64) in.Read<uint32_t>();  // ch_reserved
  packed.size = is64 ? in.Read<uint64_t>() : in.Read<uint32_t>();
  if (!Unpacker::Knows(packed.type)) {
    return Fail(ErrorCode::kUnsupported, "a section is compressed in format " +
                                             std::to_string(packed.type) +
                                             ", not zlib's or zstd's");
  }
  // The header's bytes were read, so neither wraps.
  packed.offset = section.file_offset + header_bytes;
  packed.packed_size = section.size - header_bytes;
  return packed;
}

Result<SectionBytes::Packed> SectionBytes::Packed::ReadOld(
    const ByteSource& file, const ElfSection& section) {
  std::array<std::byte, kOldMagic.size() + sizeof(uint64_t)> bytes = {};
  if (section.size < bytes.size()) {
    return Fail(ErrorCode::kCorrupt, "a compressed section has no header");
  }
  const auto read = file.ReadAt(section.file_offset, bytes);
  if (!read) return Fail(read.error());
  if (std::memcmp(bytes.data(), kOldMagic.data(), kOldMagic.size()) != 0) {
    return Fail(ErrorCode::kCorrupt, "a compressed section has no header");
  }
  const auto size = std::span(bytes).subspan(kOldMagic.size());
  ByteReader in(size);
  return Packed{.type = ELFCOMPRESS_ZLIB,
                .size = __builtin_bswap64(in.Read<uint64_t>()),
                .offset = section.file_offset + bytes.size(),
                .packed_size = section.size - bytes.size()};
}

Result<std::string> SectionBytes::Packed::Unpack(const ByteSource& file) const {
  const auto unpacked_size = static_cast<size_t>(size);
  const auto unpacker = Unpacker::OfType(type);
  if (unpacker == nullptr)
    return Fail(ErrorCode::kLimit, "no memory to unpack");
  // Read in blocks: what is compressed can have gigabytes too.
  std::vector<std::byte> block(
      static_cast<size_t>(std::min<uint64_t>(packed_size, kBlockBytes)));
  std::string text;
  text.reserve(unpacked_size);  // no page of it is used before it is written
  for (uint64_t at = 0; at < packed_size; at += block.size()) {
    const auto part = std::span(block).first(static_cast<size_t>(
        std::min<uint64_t>(packed_size - at, block.size())));
    const auto place = CheckedAdd(offset, at);
    if (!place) return Fail(ErrorCode::kCorrupt, "a section wraps around");
    const auto read = file.ReadAt(*place, part);
    if (!read) return Fail(read.error());
    if (!unpacker->Append(part, unpacked_size, text)) {
      return Fail(ErrorCode::kCorrupt, "a compressed section is malformed");
    }
  }
  // Offsets into the section are checked by its size, so a short one is no use.
  if (!unpacker->at_end() || text.size() != unpacked_size) {
    return Fail(ErrorCode::kCorrupt, "a compressed section cannot be unpacked");
  }
  return text;
}

Status SectionBytes::Unpack(const Packed& packed, uint64_t max_bytes) {
  const auto limited = CheckSize(packed.size, packed.packed_size, max_bytes);
  if (!limited) return limited;
  auto text = packed.Unpack(*file_);
  if (!text) return Fail(std::move(text.error()));
  size_ = text->size();
  file_offset_ = 0;
  unpacked_ = ByteSource::OfMemory(std::move(*text));
  is_unpacked_ = true;
  return {};
}

Result<SectionBytes> SectionBytes::Open(const ByteSource& file,
                                        const ElfImage& image,
                                        const ElfSection& section,
                                        uint64_t max_bytes) {
  const bool has_bytes = section.type != SHT_NOBITS;
  SectionBytes bytes(file, section.file_offset, has_bytes ? section.size : 0);
  if ((section.flags & SHF_COMPRESSED) == 0 || !has_bytes) return bytes;
  const auto packed = Packed::Read(file, image.elf_class(), section);
  if (!packed) return Fail(packed.error());
  const auto status = bytes.Unpack(*packed, max_bytes);
  if (!status) return Fail(status.error());
  return bytes;
}

Result<SectionBytes> SectionBytes::OpenOldCompressed(const ByteSource& file,
                                                     const ElfSection& section,
                                                     uint64_t max_bytes) {
  SectionBytes bytes(file, section.file_offset, 0);
  if (section.type == SHT_NOBITS) return bytes;
  const auto packed = Packed::ReadOld(file, section);
  if (!packed) return Fail(packed.error());
  const auto status = bytes.Unpack(*packed, max_bytes);
  if (!status) return Fail(status.error());
  return bytes;
}

std::span<const std::byte> SectionBytes::Mapped() const {
  if (is_unpacked_ || file_->mapping() == nullptr) return {};
  const auto bytes = file_->mapping()->bytes();
  if (file_offset_ > bytes.size() || size_ > bytes.size() - file_offset_) {
    return {};
  }
  return bytes.subspan(static_cast<size_t>(file_offset_),
                       static_cast<size_t>(size_));
}

Status SectionBytes::ReadAt(uint64_t offset, std::span<std::byte> out) const {
  const auto place = CheckedAdd(file_offset_, offset);
  if (!place || offset > size_ || out.size() > size_ - offset) {
    return Fail(ErrorCode::kCorrupt, "a read beyond the end of a section");
  }
  return source().ReadAt(*place, out);
}

Result<size_t> SectionBytes::ReadSomeAt(uint64_t offset,
                                        std::span<std::byte> out) const {
  const auto place = CheckedAdd(file_offset_, offset);
  if (!place || offset >= size_) return 0;
  const auto want =
      static_cast<size_t>(std::min<uint64_t>(out.size(), size_ - offset));
  return source().ReadSomeAt(*place, out.first(want));
}

}  // namespace ksym
