// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ksym/base/address.h"
#include "ksym/base/result.h"
#include "ksym/elf/byte_source.h"

namespace ksym {

// A PT_LOAD program header: which bytes of the file are at which address.
struct ElfSegment {
  FileOffset file_offset;
  uint64_t file_size = 0;
  ElfAddress address;
  bool executable = false;
};

// A section header, widened to 64 bits.
struct ElfSection {
  uint32_t name = 0;  // offset in the section name table
  uint32_t type = 0;
  uint32_t link = 0;
  uint32_t info = 0;  // of relocations the section that they are for
  uint64_t flags = 0;
  ElfAddress address;
  uint64_t file_offset = 0;
  uint64_t size = 0;
  uint64_t entry_size = 0;
};

// Byte sizes that differ between the classes.
enum class ElfClass : uint8_t { k32, k64 };

// Files with more than these are not as compilers make them, and what is done
// for each of one would take long. Linkers write tens of sections; an object
// with a section per function has some hundred thousand.
inline constexpr uint64_t kMaxSections = uint64_t{1} << 18;
// Bytes of their names together, and of one that can be found by its name.
inline constexpr size_t kMaxSectionNames = size_t{16} << 20;
inline constexpr size_t kMaxSectionNameBytes = 64;
// As many as Linux takes of a program: 1,170 of a 64-bit file.
inline constexpr size_t kMaxProgramHeaderBytes = size_t{64} << 10;
// Notes that are searched for a build-id, and the bytes of each.
inline constexpr size_t kMaxNotes = 64;
inline constexpr size_t kMaxNoteBytes = size_t{64} << 10;
inline constexpr size_t kMaxBuildIdBytes = 64;

// The headers of a little-endian ELF file of either class: System V ABI,
// chapters 4 and 5. Everything in them is untrusted; offsets are checked when
// they are used. Holds the headers only (tens of bytes per section), not the
// source. Immutable.
class ElfImage {
 public:
  // kUnsupported: not ELF, or big-endian. kCorrupt: the ELF header or program
  // headers lie. kLimit: more program headers than kMaxProgramHeaderBytes. Bad
  // section headers are no error, because a program runs without any:
  // sections() is empty and section_error() says why; kLimit: kMaxSections or
  // kMaxSectionNames. Cost: O(n log n) of sections, at most 0.1 s.
  static Result<ElfImage> Parse(const ByteSource& source);

  ElfClass elf_class() const { return class_; }
  uint16_t machine() const { return machine_; }
  const std::vector<ElfSegment>& segments() const { return segments_; }
  // PT_GNU_EH_FRAME: where to look for .eh_frame without sections.
  const std::optional<ElfSegment>& eh_frame_header() const {
    return eh_frame_header_;
  }
  const std::vector<ElfSection>& sections() const { return sections_; }
  const Status& section_error() const { return section_error_; }
  // The GNU build-id note's bytes, at most kMaxBuildIdBytes; empty when there
  // is none.
  const std::string& build_id() const { return build_id_; }

  // The first section of that name, or null; none has a name of more than
  // kMaxSectionNameBytes. O(log sections).
  const ElfSection* FindSection(std::string_view name) const;

 private:
  struct Header;

  ElfImage() = default;
  Result<Header> ReadHeader(const ByteSource& source);
  Status ReadSegments(const ByteSource& source, const Header& header);
  Status ReadSections(const ByteSource& source, const Header& header);
  void IndexNames(std::string names);
  void FindBuildId(const ByteSource& source);

  ElfClass class_ = ElfClass::k64;
  uint16_t machine_ = 0;
  std::vector<ElfSegment> segments_;
  std::optional<ElfSegment> eh_frame_header_;
  std::vector<ElfSection> sections_;
  // Places to look for notes: PT_NOTE segments, or SHT_NOTE sections.
  struct Extent {
    uint64_t file_offset = 0;
    uint64_t size = 0;
  };
  std::vector<Extent> notes_;
  std::string section_names_;
  // The sections whose names can be found, by name; of equal names the first.
  struct NamedSection {
    uint32_t name = 0;  // offset in section_names_
    uint32_t name_size = 0;
    uint32_t section = 0;
  };
  std::string_view NameOf(const NamedSection& named) const {
    return std::string_view(section_names_).substr(named.name, named.name_size);
  }
  std::vector<NamedSection> named_sections_;
  Status section_error_;
  std::string build_id_;
};

// The address at which the file's headers place this byte; executable
// segments first, since a page at a segment's edge can be mapped twice.
// Nothing when no segment holds it. Half-open: a segment's last byte is in it.
std::optional<ElfAddress> ToElfAddress(const std::vector<ElfSegment>& segments,
                                       FileOffset offset);

// A section's bytes, at most max_bytes (then kLimit).
Result<std::vector<std::byte>> ReadSection(const ByteSource& source,
                                           const ElfSection& section,
                                           size_t max_bytes);

// Lower-case hexadecimal.
std::string ToHex(std::string_view bytes);

}  // namespace ksym
