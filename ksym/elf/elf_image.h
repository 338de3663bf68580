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
  uint64_t flags = 0;
  ElfAddress address;
  uint64_t file_offset = 0;
  uint64_t size = 0;
  uint64_t entry_size = 0;
};

// Byte sizes that differ between the classes.
enum class ElfClass : uint8_t { k32, k64 };

// The headers of a little-endian ELF file of either class: System V ABI,
// chapters 4 and 5. Everything in them is untrusted; offsets are checked when
// they are used. Holds the headers only (tens of bytes per section), not the
// source. Immutable.
class ElfImage {
 public:
  // kUnsupported: not ELF, or big-endian. kCorrupt: the ELF header or program
  // headers lie. Bad section headers are no error, because a program runs
  // without any: sections() is empty and section_error() says why.
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
  // The GNU build-id note's bytes, at most 64; empty when there is none.
  const std::string& build_id() const { return build_id_; }

  std::string_view SectionName(const ElfSection& section) const;
  // The first section of that name, or null. O(sections).
  const ElfSection* FindSection(std::string_view name) const;

 private:
  struct Header;

  ElfImage() = default;
  Result<Header> ReadHeader(const ByteSource& source);
  Status ReadSegments(const ByteSource& source, const Header& header);
  Status ReadSections(const ByteSource& source, const Header& header);
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
