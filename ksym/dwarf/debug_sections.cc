// SPDX-License-Identifier: Apache-2.0
#include "ksym/dwarf/debug_sections.h"

#include <elf.h>

#include <optional>
#include <string>
#include <utility>

#include "ksym/base/byte_cursor.h"
#include "ksym/elf/relocatable.h"
#include "ksym/elf/section_bytes.h"

namespace ksym {
namespace {

// In the order of DebugSection.
constexpr std::array<std::string_view, kDebugSectionCount> kNames = {
    ".debug_info",     ".debug_abbrev",      ".debug_line", ".debug_str",
    ".debug_line_str", ".debug_str_offsets", ".debug_addr", ".debug_ranges",
    ".debug_rnglists", ".debug_cu_index"};

std::string SectionName(size_t index, DebugSections::Kind kind) {
  std::string name(kNames[index]);
  // The index of a package has the same name in both.
  const bool is_index = index == static_cast<size_t>(DebugSection::kCuIndex);
  if (kind == DebugSections::Kind::kSplit && !is_index) name += ".dwo";
  return name;
}

// The section of that name, or of the one that it has when it is compressed the
// old way.
struct Found {
  const ElfSection* section = nullptr;
  std::string name;
  bool is_old_compressed = false;
};

Found FindEither(const ElfImage& image, std::string name) {
  Found found = {image.FindSection(name), std::move(name), false};
  if (found.section != nullptr) return found;
  std::string old_name = ".z" + found.name.substr(1);
  const ElfSection* section = image.FindSection(old_name);
  if (section == nullptr) return found;
  return {section, std::move(old_name), true};
}

}  // namespace

bool DebugSections::HasInfo(const ElfImage& image) {
  const ElfSection* info = FindEither(image, ".debug_info").section;
  return info != nullptr && info->size > 0 && info->type != SHT_NOBITS;
}

Result<DebugSections> DebugSections::Load(const ByteSource& source,
                                          const ElfImage& image,
                                          const Options& options) {
  DebugSections sections;
  std::optional<Relocations> relocations;
  // An object file or a kernel module has zeros where the linker would have put
  // offsets and addresses, and says them in relocations.
  if (IsRelocatable(source)) {
    auto loaded = Relocations::Load(source, image);
    if (!loaded) return Fail(std::move(loaded.error()));
    relocations = std::move(*loaded);
  }
  // What is relocated is written to.
  const auto use = relocations ? Bytes::Use::kCopy : Bytes::Use::kAsMapped;
  // Views of mapped sections outlive the caller's source.
  sections.mapping_ = source.mapping();
  for (size_t i = 0; i < kDebugSectionCount; ++i) {
    const Found found = FindEither(image, SectionName(i, options.kind));
    if (found.section == nullptr) continue;
    auto opened = found.is_old_compressed
                      ? SectionBytes::OpenOldCompressed(
                            source, *found.section, options.max_section_bytes)
                      : SectionBytes::Open(source, image, *found.section,
                                           options.max_section_bytes);
    Status status;
    if (!opened) {
      status = Fail(std::move(opened.error()));
    } else {
      status = sections.sections_[i].Take(std::move(*opened), source.size(),
                                          options.max_section_bytes, use);
    }
    if (status && relocations) {
      status =
          relocations->Apply(*found.section, sections.sections_[i].Writable());
    }
    if (!status) return Fail(std::move(status.error()).WithContext(found.name));
  }
  return sections;
}

Status DebugSections::Bytes::Take(SectionBytes&& bytes, uint64_t file_size,
                                  uint64_t max_bytes, Use use) {
  if (bytes.size() > max_bytes) {
    return Fail(ErrorCode::kLimit, std::to_string(bytes.size()) +
                                       " bytes, more than " +
                                       std::to_string(max_bytes));
  }
  size = static_cast<size_t>(bytes.size());
  if (bytes.is_unpacked()) {
    unpacked = std::move(bytes).TakeUnpackedText();
    return {};
  }
  if (use == Use::kAsMapped && !bytes.Mapped().empty()) {
    mapped = bytes.Mapped().data();
    return {};
  }
  // Before there is memory for what a header merely claims.
  if (bytes.size() > file_size) {
    return Fail(ErrorCode::kCorrupt, "larger than the file");
  }
  data = std::make_unique_for_overwrite<std::byte[]>(size);
  return bytes.ReadAt(0, {data.get(), size});
}

std::string_view DebugSections::Text(DebugSection section,
                                     uint64_t offset) const {
  ByteCursor in(Get(section));
  in.Seek(offset);
  return in.ReadCString();
}

size_t DebugSections::memory_bytes() const {
  size_t bytes = 0;
  for (const Bytes& section : sections_) {
    if (section.mapped == nullptr) bytes += section.size;
  }
  return bytes;
}

}  // namespace ksym
