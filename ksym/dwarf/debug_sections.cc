#include "ksym/dwarf/debug_sections.h"

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

}  // namespace

Result<DebugSections> DebugSections::Load(const ByteSource& source,
                                          const ElfImage& image, Kind kind) {
  DebugSections sections;
  std::optional<Relocations> relocations;
  if (IsRelocatable(source)) {
    auto loaded = Relocations::Load(source, image);
    if (!loaded) return Fail(std::move(loaded.error()));
    relocations = std::move(*loaded);
  }
  for (size_t i = 0; i < kDebugSectionCount; ++i) {
    const std::string name = SectionName(i, kind);
    const ElfSection* section = image.FindSection(name);
    if (section == nullptr) continue;
    const auto opened = SectionBytes::Open(source, image, *section);
    if (!opened) return Fail(Error(opened.error()).WithContext(name));
    if (opened->size() > kMaxDebugSectionBytes) {
      return Fail(ErrorCode::kLimit, name + " has " +
                                         std::to_string(opened->size()) +
                                         " bytes, more than " +
                                         std::to_string(kMaxDebugSectionBytes));
    }
    // Before there is memory for what a header merely claims.
    if (!opened->is_unpacked() && opened->size() > source.size()) {
      return Fail(ErrorCode::kCorrupt, name + " is larger than the file");
    }
    Bytes& bytes = sections.sections_[i];
    bytes.size = static_cast<size_t>(opened->size());
    bytes.data = std::make_unique_for_overwrite<std::byte[]>(bytes.size);
    const std::span text(bytes.data.get(), bytes.size);
    auto read = opened->ReadAt(0, text);
    if (read && relocations) read = relocations->Apply(*section, text);
    if (!read) return Fail(std::move(read.error()).WithContext(name));
  }
  return sections;
}

std::string_view DebugSections::Text(DebugSection section,
                                     uint64_t offset) const {
  ByteCursor in(Get(section));
  in.Seek(offset);
  return in.ReadCString();
}

size_t DebugSections::memory_bytes() const {
  size_t bytes = 0;
  for (const Bytes& section : sections_) bytes += section.size;
  return bytes;
}

}  // namespace ksym
