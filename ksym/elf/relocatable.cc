// SPDX-License-Identifier: Apache-2.0
#include "ksym/elf/relocatable.h"

#include <elf.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstring>
#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "ksym/base/byte_reader.h"
#include "ksym/elf/section_bytes.h"
#include "ksym/elf/symbol_reader.h"

namespace ksym {
namespace {

static_assert(std::endian::native == std::endian::little);

constexpr size_t kBlockRecords = 2048;
// The value of symbols that are in another file: no code is there.
constexpr uint64_t kNowhere = ~uint64_t{0};

// Calls `use` with a reader of each record of a table, in order.
Status ForEachRecord(const ByteSource& source, const ElfImage& image,
                     const std::pair<const ElfSection*, size_t>& table,
                     const std::function<Status(ByteReader&)>& use) {
  const auto& [section, record_size] = table;
  const auto records = SectionBytes::Open(source, image, *section);
  if (!records) return Fail(records.error());
  const uint64_t size = records->size() / record_size * record_size;
  std::vector<std::byte> block(kBlockRecords * record_size);
  for (uint64_t at = 0; at < size; at += block.size()) {
    const auto bytes = std::span(block).first(
        static_cast<size_t>(std::min<uint64_t>(size - at, block.size())));
    auto status = records->ReadAt(at, bytes);
    for (size_t i = 0; status && i < bytes.size(); i += record_size) {
      ByteReader in(bytes.subspan(i, record_size));
      status = use(in);
    }
    if (!status) return status;
  }
  return {};
}

// How many bytes are written: the symbol's address and the addend. 0: nothing
// is, as for offsets of thread-local variables. Nothing: it is not known.
std::optional<size_t> WidthOf(uint16_t machine, uint32_t type) {
  struct Kind {
    uint16_t machine;
    uint32_t type;
    size_t width;
  };
  static constexpr Kind kKinds[] = {
      {EM_X86_64, R_X86_64_NONE, 0},
      {EM_X86_64, R_X86_64_64, 8},
      {EM_X86_64, R_X86_64_32, 4},
      {EM_X86_64, R_X86_64_32S, 4},
      {EM_X86_64, R_X86_64_DTPOFF64, 0},
      {EM_X86_64, R_X86_64_DTPOFF32, 0},
      {EM_AARCH64, R_AARCH64_NONE, 0},
      {EM_AARCH64, R_AARCH64_ABS64, 8},
      {EM_AARCH64, R_AARCH64_ABS32, 4},
      {EM_AARCH64, R_AARCH64_TLS_DTPMOD, 0},
      {EM_AARCH64, R_AARCH64_TLS_DTPREL, 0},
      {EM_386, R_386_NONE, 0},
      {EM_386, R_386_32, 4},
      {EM_386, R_386_TLS_LDO_32, 0},
      {EM_ARM, R_ARM_NONE, 0},
      {EM_ARM, R_ARM_ABS32, 4},
      {EM_ARM, R_ARM_TLS_LDO32, 0},
  };
  for (const Kind& kind : kKinds) {
    if (kind.machine == machine && kind.type == type) return kind.width;
  }
  return std::nullopt;
}

}  // namespace

bool IsRelocatable(const ByteSource& source) {
  std::array<std::byte, EI_NIDENT + 2> head = {};
  if (!source.ReadAt(0, head)) return false;
  uint16_t type = 0;
  std::memcpy(&type, head.data() + EI_NIDENT, sizeof(type));
  return std::memcmp(head.data(), ELFMAG, SELFMAG) == 0 && type == ET_REL;
}

struct Relocations::Entry {
  uint64_t offset = 0;
  uint64_t symbol = 0;
  uint32_t type = 0;
  // For SHT_REL it is what the bytes hold.
  std::optional<uint64_t> addend;

  static size_t SizeOf(ElfClass elf_class, bool has_addend) {
    if (elf_class == ElfClass::k64) {
      return has_addend ? sizeof(Elf64_Rela) : sizeof(Elf64_Rel);
    }
    return has_addend ? sizeof(Elf32_Rela) : sizeof(Elf32_Rel);
  }

  static Entry Parse(ByteReader& in, ElfClass elf_class, bool has_addend) {
    Entry entry;
    if (elf_class == ElfClass::k64) {
      entry.offset = in.Read<uint64_t>();
      const auto info = in.Read<uint64_t>();
      entry.symbol = ELF64_R_SYM(info);
      entry.type = static_cast<uint32_t>(ELF64_R_TYPE(info));
      if (has_addend) entry.addend = in.Read<uint64_t>();
    } else {
      entry.offset = in.Read<uint32_t>();
      const auto info = in.Read<uint32_t>();
      entry.symbol = ELF32_R_SYM(info);
      entry.type = ELF32_R_TYPE(info);
      if (has_addend) entry.addend = in.Read<uint32_t>();
    }
    return entry;
  }
};

Status Relocations::ReadSymbols(const ElfSection& table) {
  const bool is64 = image_->elf_class() == ElfClass::k64;
  const size_t size = is64 ? sizeof(Elf64_Sym) : sizeof(Elf32_Sym);
  if (table.size / size > kMaxSymbols) {
    return Fail(ErrorCode::kLimit,
                std::to_string(table.size / size) + " symbols");
  }
  return ForEachRecord(*source_, *image_, {&table, size},
                       [&](ByteReader& in) -> Status {
                         uint64_t value = 0;
                         in.Read<uint32_t>();  // st_name
                         if (!is64) {
                           value = in.Read<uint32_t>();
                           in.Read<uint32_t>();  // st_size
                         }
                         in.Read<uint16_t>();  // st_info, st_other
                         const auto section = in.Read<uint16_t>();
                         if (is64) value = in.Read<uint64_t>();
                         // A common symbol gets its place from the linker only.
                         if (section == SHN_UNDEF || section == SHN_COMMON) {
                           value = kNowhere;
                         } else if (section == SHN_XINDEX) {
                           return Fail(ErrorCode::kUnsupported,
                                       "symbols in more than 65,279 sections");
                         } else if (section < image_->sections().size()) {
                           value += image_->sections()[section].address.value;
                         }
                         addresses_.push_back(value);
                         return {};
                       });
}

Result<Relocations> Relocations::Load(const ByteSource& source,
                                      const ElfImage& image) {
  Relocations relocations(source, image);
  for (const ElfSection& section : image.sections()) {
    if (section.type != SHT_SYMTAB) continue;
    auto status = relocations.ReadSymbols(section);
    if (!status) return Fail(std::move(status.error()));
    break;  // there is one at most
  }
  return relocations;
}

Status Relocations::ApplyOne(const Entry& entry,
                             std::span<std::byte> bytes) const {
  const auto width = WidthOf(image_->machine(), entry.type);
  if (!width) {
    return Fail(ErrorCode::kUnsupported,
                "a relocation of type " + std::to_string(entry.type) +
                    " of machine " + std::to_string(image_->machine()));
  }
  if (*width == 0) return {};
  if (entry.offset > bytes.size() || *width > bytes.size() - entry.offset ||
      entry.symbol >= addresses_.size()) {
    return Fail(ErrorCode::kCorrupt, "a relocation at offset " +
                                         std::to_string(entry.offset) +
                                         " is out of bounds");
  }
  std::byte* place = bytes.data() + entry.offset;
  uint64_t addend = 0;
  if (entry.addend) {
    addend = *entry.addend;
  } else {
    std::memcpy(&addend, place, *width);
  }
  const uint64_t address = addresses_[entry.symbol];
  // An addend must not bring it back to where code is.
  const uint64_t value = address == kNowhere ? kNowhere : address + addend;
  std::memcpy(place, &value, *width);
  return {};
}

Status Relocations::ApplyTable(const ElfSection& table,
                               std::span<std::byte> bytes) const {
  const bool has_addend = table.type == SHT_RELA;
  const ElfClass elf_class = image_->elf_class();
  return ForEachRecord(
      *source_, *image_, {&table, Entry::SizeOf(elf_class, has_addend)},
      [&](ByteReader& in) {
        return ApplyOne(Entry::Parse(in, elf_class, has_addend), bytes);
      });
}

Status Relocations::Apply(const ElfSection& section,
                          std::span<std::byte> bytes) const {
  const auto& sections = image_->sections();
  const auto index = static_cast<size_t>(&section - sections.data());
  for (size_t i = 0; i < sections.size(); ++i) {
    if (sections[i].type != SHT_RELA && sections[i].type != SHT_REL) continue;
    // A section has one; more would be a way to make the reader busy.
    if (sections[i].info == index) return ApplyTable(sections[i], bytes);
  }
  return {};
}

}  // namespace ksym
