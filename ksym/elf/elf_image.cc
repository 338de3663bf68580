// SPDX-License-Identifier: Apache-2.0
#include "ksym/elf/elf_image.h"

#include <elf.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <span>
#include <utility>

#include "ksym/base/byte_reader.h"

namespace ksym {
namespace {

// Reads fields whose width depends on the ELF class.
class FieldReader {
 public:
  FieldReader(std::span<const std::byte> bytes, ElfClass elf_class)
      : reader_(bytes), class_(elf_class) {}

  uint16_t Half() { return reader_.Read<uint16_t>(); }
  uint32_t Word() { return reader_.Read<uint32_t>(); }
  // Elf32_Addr, Elf64_Addr, Elf64_Off, Elf64_Xword ...
  uint64_t Wide() {
    return class_ == ElfClass::k64 ? reader_.Read<uint64_t>()
                                   : reader_.Read<uint32_t>();
  }
  bool ok() const { return reader_.ok(); }

 private:
  ByteReader reader_;
  ElfClass class_;
};

ElfSection ParseSection(std::span<const std::byte> bytes, ElfClass elf_class) {
  FieldReader in(bytes, elf_class);
  ElfSection section;
  section.name = in.Word();
  section.type = in.Word();
  section.flags = in.Wide();
  section.address = {in.Wide()};
  section.file_offset = in.Wide();
  section.size = in.Wide();
  section.link = in.Word();
  section.info = in.Word();
  in.Wide();  // sh_addralign
  section.entry_size = in.Wide();
  return section;
}

size_t SectionHeaderSize(ElfClass elf_class) {
  return elf_class == ElfClass::k64 ? sizeof(Elf64_Shdr) : sizeof(Elf32_Shdr);
}

uint64_t AlignmentOf(std::span<const std::byte> header, ElfClass elf_class) {
  const size_t offset = elf_class == ElfClass::k64
                            ? offsetof(Elf64_Shdr, sh_addralign)
                            : offsetof(Elf32_Shdr, sh_addralign);
  return FieldReader(header.subspan(offset), elf_class).Wide();
}

// Gives the sections of a relocatable file addresses: see relocatable.h.
// `table` are their headers.
Status LayOutSections(std::span<const std::byte> table, ElfClass elf_class,
                      std::vector<ElfSection>& sections) {
  const size_t entry_size = SectionHeaderSize(elf_class);
  uint64_t next = 0;
  constexpr uint64_t kKinds = SHF_ALLOC | SHF_EXECINSTR;
  for (const uint64_t kind : {kKinds, uint64_t{SHF_ALLOC}}) {
    for (size_t i = 0; i < sections.size(); ++i) {
      ElfSection& section = sections[i];
      if ((section.flags & kKinds) != kind || section.size == 0) continue;
      const auto header = table.subspan(i * entry_size, entry_size);
      const uint64_t alignment =
          std::max<uint64_t>(AlignmentOf(header, elf_class), 1);
      const uint64_t gap = (alignment - next % alignment) % alignment;
      const auto start = CheckedAdd(next, gap);
      const auto end = start ? CheckedAdd(*start, section.size) : std::nullopt;
      if (!end) return Fail(ErrorCode::kCorrupt, "sections exceed 2^64 bytes");
      section.address = {*start};
      next = *end;
    }
  }
  return {};
}

size_t ProgramHeaderSize(ElfClass elf_class) {
  return elf_class == ElfClass::k64 ? sizeof(Elf64_Phdr) : sizeof(Elf32_Phdr);
}

// Reads a table of `count` records; the product is checked.
Result<std::vector<std::byte>> ReadTable(const ByteSource& source,
                                         uint64_t offset, uint64_t count,
                                         size_t record_size) {
  const auto size = CheckedMul(count, record_size);
  // Checked before there is memory for what a header merely claims.
  if (!size || *size > source.size()) {
    return Fail(ErrorCode::kCorrupt, "table at offset " +
                                         std::to_string(offset) +
                                         " is larger than the file");
  }
  std::vector<std::byte> bytes(static_cast<size_t>(*size));
  const auto read = source.ReadAt(offset, bytes);
  if (!read) return Fail(read.error());
  return bytes;
}

// The GNU build-id among the notes in `bytes`: gABI "Note Section".
std::string BuildIdOfNotes(std::span<const std::byte> bytes) {
  ByteReader in(bytes);
  while (in.remaining() >= 12) {
    const auto name_size = in.Read<uint32_t>();
    const auto text_size = in.Read<uint32_t>();
    const auto type = in.Read<uint32_t>();
    const auto name = in.ReadString(name_size);
    in.ReadBytes(std::min<size_t>(-name_size & 3u, in.remaining()));
    const auto text = in.ReadString(text_size);
    in.ReadBytes(std::min<size_t>(-text_size & 3u, in.remaining()));
    if (!in.ok()) break;
    if (type == NT_GNU_BUILD_ID && name == std::string_view("GNU\0", 4) &&
        text_size > 0 && text_size <= kMaxBuildIdBytes) {
      return std::string(text);
    }
  }
  return {};
}

}  // namespace

struct ElfImage::Header {
  uint64_t segment_offset = 0;
  uint64_t segment_count = 0;
  uint64_t section_offset = 0;
  uint64_t section_count = 0;
  uint64_t section_names_index = 0;
  uint16_t section_entry_size = 0;
  bool is_relocatable = false;
};

Result<ElfImage::Header> ElfImage::ReadHeader(const ByteSource& source) {
  std::array<std::byte, sizeof(Elf64_Ehdr)> bytes = {};
  const auto got = source.ReadSomeAt(0, bytes);
  if (!got) return Fail(got.error());
  const std::string_view ident(reinterpret_cast<const char*>(bytes.data()),
                               EI_NIDENT);
  if (*got < EI_NIDENT || !ident.starts_with(ELFMAG)) {
    return Fail(ErrorCode::kUnsupported, "not an ELF file");
  }
  if (ident[EI_DATA] != ELFDATA2LSB) {
    return Fail(ErrorCode::kUnsupported, "not a little-endian ELF file");
  }
  if (ident[EI_CLASS] != ELFCLASS64 && ident[EI_CLASS] != ELFCLASS32) {
    return Fail(ErrorCode::kCorrupt, "ELF class is neither 32 nor 64 bit");
  }
  class_ = ident[EI_CLASS] == ELFCLASS64 ? ElfClass::k64 : ElfClass::k32;
  const std::span<const std::byte> fields(bytes.data(), *got);
  FieldReader in(fields.subspan(EI_NIDENT), class_);
  Header header;
  header.is_relocatable = in.Half() == ET_REL;
  machine_ = in.Half();
  in.Word();  // e_version
  in.Wide();  // e_entry
  header.segment_offset = in.Wide();
  header.section_offset = in.Wide();
  in.Word();  // e_flags
  in.Half();  // e_ehsize
  const uint16_t segment_entry_size = in.Half();
  header.segment_count = in.Half();
  header.section_entry_size = in.Half();
  header.section_count = in.Half();
  header.section_names_index = in.Half();
  if (!in.ok()) return Fail(ErrorCode::kCorrupt, "ELF header is cut off");
  // An object file has no segments and 0 as their size.
  if (header.segment_count > 0 &&
      segment_entry_size != ProgramHeaderSize(class_)) {
    return Fail(ErrorCode::kCorrupt, "e_phentsize " +
                                         std::to_string(segment_entry_size) +
                                         " is not this class's");
  }
  return header;
}

Status ElfImage::ReadSegments(const ByteSource& source, const Header& header) {
  const size_t entry_size = ProgramHeaderSize(class_);
  if (header.segment_count > kMaxProgramHeaderBytes / entry_size) {
    return Fail(ErrorCode::kLimit,
                std::to_string(header.segment_count) + " program headers");
  }
  const auto table = ReadTable(source, header.segment_offset,
                               header.segment_count, entry_size);
  if (!table) {
    return Fail(Error(table.error()).WithContext("program headers"));
  }
  const std::span<const std::byte> bytes(*table);
  for (size_t at = 0; at + entry_size <= bytes.size(); at += entry_size) {
    FieldReader in(bytes.subspan(at, entry_size), class_);
    const uint32_t type = in.Word();
    // p_flags is second in Elf64_Phdr and last but one in Elf32_Phdr.
    uint32_t flags = class_ == ElfClass::k64 ? in.Word() : 0;
    ElfSegment segment;
    segment.file_offset = {in.Wide()};
    segment.address = {in.Wide()};
    in.Wide();  // p_paddr
    segment.file_size = in.Wide();
    in.Wide();  // p_memsz
    if (class_ == ElfClass::k32) flags = in.Word();
    segment.executable = (flags & PF_X) != 0;
    if (type == PT_NOTE) {
      notes_.push_back({segment.file_offset.value, segment.file_size});
    }
    if (type == PT_GNU_EH_FRAME) eh_frame_header_ = segment;
    const bool fits =
        CheckedAdd(segment.file_offset.value, segment.file_size) &&
        CheckedAdd(segment.address.value, segment.file_size);
    if (type != PT_LOAD || segment.file_size == 0) continue;
    // Distances in it could not be added to its address without a check each.
    if (!fits) {
      return Fail(ErrorCode::kCorrupt, "a PT_LOAD segment wraps around");
    }
    segments_.push_back(segment);
  }
  return {};
}

Status ElfImage::ReadSections(const ByteSource& source, const Header& header) {
  // Stripped of them, as a program runs without (elf(5)).
  if (header.section_offset == 0) return {};
  const size_t entry_size = SectionHeaderSize(class_);
  if (header.section_entry_size != entry_size) {
    return Fail(ErrorCode::kCorrupt, "e_shentsize is not this class's");
  }
  uint64_t count = header.section_count;
  uint64_t names_index = header.section_names_index;
  if (count == 0 || names_index == SHN_XINDEX) {
    // gABI: what does not fit 16 bits is in section 0's size and link.
    const auto first = ReadTable(source, header.section_offset, 1, entry_size);
    if (!first) return Fail(first.error());
    const ElfSection section = ParseSection(*first, class_);
    if (count == 0) count = section.size;
    if (names_index == SHN_XINDEX) names_index = section.link;
  }
  if (count > kMaxSections) {
    return Fail(ErrorCode::kLimit, std::to_string(count) + " sections");
  }
  const auto table =
      ReadTable(source, header.section_offset, count, entry_size);
  if (!table) return Fail(table.error());
  for (size_t at = 0; at < table->size(); at += entry_size) {
    sections_.push_back(
        ParseSection(std::span(*table).subspan(at, entry_size), class_));
  }
  if (header.is_relocatable) {
    auto status = LayOutSections(*table, class_, sections_);
    if (!status) return status;
  }
  if (names_index >= sections_.size()) return {};
  const auto names =
      ReadSection(source, sections_[names_index], kMaxSectionNames);
  if (!names) return Fail(names.error());
  IndexNames({reinterpret_cast<const char*>(names->data()), names->size()});
  return {};
}

// Each section may claim a name that ends where the table does, so no more is
// read of one than those can have that are looked for.
void ElfImage::IndexNames(std::string names) {
  section_names_ = std::move(names);
  const std::string_view all(section_names_);
  for (uint32_t i = 0; i < sections_.size(); ++i) {
    if (sections_[i].name >= all.size()) continue;
    const auto start = all.substr(sections_[i].name, kMaxSectionNameBytes + 1);
    const size_t size = std::min(start.find('\0'), start.size());
    if (size > kMaxSectionNameBytes) continue;
    named_sections_.push_back(
        {sections_[i].name, static_cast<uint32_t>(size), i});
  }
  std::ranges::stable_sort(named_sections_, {},
                           [this](const auto& named) { return NameOf(named); });
}

void ElfImage::FindBuildId(const ByteSource& source) {
  // The segments' notes are in front already: a program may have no section
  // headers, and an object file has no segments.
  for (const ElfSection& section : sections_) {
    if (section.type == SHT_NOTE) {
      notes_.push_back({section.file_offset, section.size});
    }
  }
  std::vector<std::byte> bytes;
  for (size_t i = 0; i < std::min(notes_.size(), kMaxNotes); ++i) {
    if (notes_[i].size > kMaxNoteBytes) continue;
    bytes.resize(static_cast<size_t>(notes_[i].size));
    if (!source.ReadAt(notes_[i].file_offset, bytes)) continue;
    build_id_ = BuildIdOfNotes(bytes);
    if (!build_id_.empty()) break;
  }
  notes_ = {};
}

Result<ElfImage> ElfImage::Parse(const ByteSource& source) {
  ElfImage image;
  const auto header = image.ReadHeader(source);
  if (!header) return Fail(header.error());
  const auto segments = image.ReadSegments(source, *header);
  if (!segments) return Fail(segments.error());
  image.section_error_ = image.ReadSections(source, *header);
  if (!image.section_error_) {
    image.sections_.clear();
    image.named_sections_.clear();
  }
  image.FindBuildId(source);
  return image;
}

const ElfSection* ElfImage::FindSection(std::string_view name) const {
  const auto found = std::ranges::lower_bound(
      named_sections_, name, {},
      [this](const auto& named) { return NameOf(named); });
  if (found == named_sections_.end() || NameOf(*found) != name) return nullptr;
  return &sections_[found->section];
}

std::optional<ElfAddress> ToElfAddress(const std::vector<ElfSegment>& segments,
                                       FileOffset offset) {
  std::optional<ElfAddress> other;
  for (const ElfSegment& segment : segments) {
    if (offset < segment.file_offset) continue;
    const uint64_t distance = offset - segment.file_offset;
    if (distance >= segment.file_size) continue;
    if (segment.executable) return segment.address + distance;
    if (!other) other = segment.address + distance;
  }
  return other;
}

Result<std::vector<std::byte>> ReadSection(const ByteSource& source,
                                           const ElfSection& section,
                                           size_t max_bytes) {
  if (section.type == SHT_NOBITS) return std::vector<std::byte>();
  if (section.size > max_bytes) {
    return Fail(ErrorCode::kLimit,
                "a section of " + std::to_string(section.size) +
                    " bytes is larger than " + std::to_string(max_bytes));
  }
  return ReadTable(source, section.file_offset, section.size, 1);
}

std::string ToHex(std::string_view bytes) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string hex;
  hex.reserve(bytes.size() * 2);
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    hex += kDigits[byte >> 4];
    hex += kDigits[byte & 15u];
  }
  return hex;
}

}  // namespace ksym
