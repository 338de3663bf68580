#include "ksym/elf/section_bytes.h"

#include <elf.h>

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "ksym/base/byte_reader.h"
#include "ksym/elf/unpacker.h"

namespace ksym {
namespace {

constexpr size_t kBlockBytes = size_t{64} << 10;

// Elf32_Chdr and Elf64_Chdr.
struct CompressionHeader {
  uint32_t type = 0;
  uint64_t size = 0;
  size_t header_bytes = 0;
};

Result<CompressionHeader> ReadHeader(const ByteSource& file, ElfClass elf_class,
                                     const ElfSection& section) {
  const bool is64 = elf_class == ElfClass::k64;
  CompressionHeader header;
  header.header_bytes = is64 ? sizeof(Elf64_Chdr) : sizeof(Elf32_Chdr);
  if (section.size < header.header_bytes) {
    return Fail(ErrorCode::kCorrupt, "a compressed section has no header");
  }
  std::array<std::byte, sizeof(Elf64_Chdr)> bytes = {};
  const auto part = std::span(bytes).first(header.header_bytes);
  const auto read = file.ReadAt(section.file_offset, part);
  if (!read) return Fail(read.error());
  ByteReader in(part);
  header.type = in.Read<uint32_t>();
  if (is64) in.Read<uint32_t>();  // ch_reserved
  header.size = is64 ? in.Read<uint64_t>() : in.Read<uint32_t>();
  return header;
}

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

Result<std::string> Unpack(const ByteSource& file, uint64_t offset,
                           uint64_t packed_size,
                           const CompressionHeader& header) {
  const auto size = static_cast<size_t>(header.size);
  const auto unpacker = Unpacker::OfType(header.type);
  if (unpacker == nullptr)
    return Fail(ErrorCode::kLimit, "no memory to unpack");
  std::vector<std::byte> block(
      static_cast<size_t>(std::min<uint64_t>(packed_size, kBlockBytes)));
  std::string text;
  text.reserve(size);  // no page of it is used before it is written
  for (uint64_t at = 0; at < packed_size; at += block.size()) {
    const auto part = std::span(block).first(static_cast<size_t>(
        std::min<uint64_t>(packed_size - at, block.size())));
    const auto place = CheckedAdd(offset, at);
    if (!place) return Fail(ErrorCode::kCorrupt, "a section wraps around");
    const auto read = file.ReadAt(*place, part);
    if (!read) return Fail(read.error());
    if (!unpacker->Append(part, size, text)) {
      return Fail(ErrorCode::kCorrupt, "a compressed section is malformed");
    }
  }
  if (!unpacker->at_end() || text.size() != size) {
    return Fail(ErrorCode::kCorrupt, "a compressed section cannot be unpacked");
  }
  return text;
}

}  // namespace

Result<SectionBytes> SectionBytes::Open(const ByteSource& file,
                                        const ElfImage& image,
                                        const ElfSection& section,
                                        uint64_t max_bytes) {
  const bool has_bytes = section.type != SHT_NOBITS;
  SectionBytes bytes(file, section.file_offset, has_bytes ? section.size : 0);
  if ((section.flags & SHF_COMPRESSED) == 0 || !has_bytes) return bytes;
  const auto header = ReadHeader(file, image.elf_class(), section);
  if (!header) return Fail(header.error());
  if (!Unpacker::Knows(header->type)) {
    return Fail(ErrorCode::kUnsupported, "a section is compressed in format " +
                                             std::to_string(header->type) +
                                             ", not zlib's or zstd's");
  }
  // The header's bytes were read, so neither wraps.
  const uint64_t packed_at = section.file_offset + header->header_bytes;
  const uint64_t packed_size = section.size - header->header_bytes;
  const auto limited = CheckSize(header->size, packed_size, max_bytes);
  if (!limited) return Fail(limited.error());
  auto text = Unpack(file, packed_at, packed_size, *header);
  if (!text) return Fail(std::move(text.error()));
  bytes.size_ = text->size();
  bytes.file_offset_ = 0;
  bytes.unpacked_ = ByteSource::OfMemory(std::move(*text));
  bytes.is_unpacked_ = true;
  return bytes;
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
