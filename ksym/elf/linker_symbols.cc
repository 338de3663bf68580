// SPDX-License-Identifier: Apache-2.0
#include "ksym/elf/linker_symbols.h"

#include <elf.h>

#include <algorithm>
#include <span>
#include <tuple>

#include "ksym/base/byte_reader.h"
#include "ksym/elf/relocatable.h"
#include "ksym/elf/section_bytes.h"
#include "ksym/elf/symbol_reader.h"

namespace ksym {
namespace {

constexpr size_t kBlockBytes = size_t{64} << 10;
constexpr uint64_t kMaxNamesBytes = uint64_t{1} << 30;

// Linkers write at most one of each type; the first counts.
const ElfSection* FindTable(const ElfImage& image, uint32_t type) {
  for (const ElfSection& section : image.sections()) {
    if (section.type == type && section.size > 0) return &section;
  }
  return nullptr;
}

// "$x", "$d" and so on mark what kind of bytes follow (ELF for the Arm
// Architecture and the RISC-V ELF psABI, "Mapping symbols").
bool IsMappingSymbol(const ElfImage& image, std::string_view name) {
  const uint16_t machine = image.machine();
  if (machine != EM_ARM && machine != EM_AARCH64 && machine != EM_RISCV) {
    return false;
  }
  return name.size() >= 2 && name[0] == '$' &&
         std::string_view("adtx").find(name[1]) != std::string_view::npos;
}

}  // namespace

struct LinkerSymbols::RawSymbol {
  uint32_t name = 0;
  uint8_t info = 0;
  uint16_t section = 0;
  uint64_t value = 0;
  uint64_t size = 0;

  static RawSymbol Parse(ByteReader& in, ElfClass elf_class) {
    RawSymbol symbol;
    symbol.name = in.Read<uint32_t>();
    if (elf_class == ElfClass::k32) {
      symbol.value = in.Read<uint32_t>();
      symbol.size = in.Read<uint32_t>();
    }
    symbol.info = in.Read<uint8_t>();
    in.Read<uint8_t>();  // st_other
    symbol.section = in.Read<uint16_t>();
    if (elf_class == ElfClass::k64) {
      symbol.value = in.Read<uint64_t>();
      symbol.size = in.Read<uint64_t>();
    }
    return symbol;
  }

  int type() const { return ELF64_ST_TYPE(info); }
  bool IsLocal() const { return ELF64_ST_BIND(info) == STB_LOCAL; }
  bool NamesPlace() const {
    return type() == STT_FUNC || type() == STT_OBJECT ||
           type() == STT_GNU_IFUNC || type() == STT_NOTYPE;
  }
};

Result<LinkerSymbols> LinkerSymbols::Load(const ByteSource& source) {
  const auto image = ElfImage::Parse(source);
  if (!image) return Fail(image.error());
  LinkerSymbols symbols;
  symbols.build_id_ = ToHex(image->build_id());
  symbols.is_linked_ = !image->segments().empty();
  const ElfSection* table = FindTable(*image, SHT_SYMTAB);
  if (table == nullptr) table = FindTable(*image, SHT_DYNSYM);
  if (table == nullptr) return symbols;
  auto read = symbols.ReadTable(source, *image, *table);
  if (!read) return Fail(std::move(read.error()));
  symbols.Finish();
  return symbols;
}

Status LinkerSymbols::ReadNames(const ByteSource& source, const ElfImage& image,
                                const ElfSection& section) {
  if (section.link >= image.sections().size()) {
    return Fail(ErrorCode::kCorrupt, "a symbol table has no string table");
  }
  const auto strings =
      SectionBytes::Open(source, image, image.sections()[section.link]);
  if (!strings) return Fail(strings.error());
  if (!strings->is_unpacked() && strings->size() > source.size()) {
    return Fail(ErrorCode::kCorrupt, "a string table is larger than its file");
  }
  if (strings->size() > kMaxNamesBytes) {
    return Fail(ErrorCode::kLimit, "more than 1 GiB of symbol names");
  }
  names_.resize(strings->size());
  return strings->ReadAt(0, std::as_writable_bytes(std::span(names_)));
}

Status LinkerSymbols::ReadTable(const ByteSource& source, const ElfImage& image,
                                const ElfSection& section) {
  const auto names = ReadNames(source, image, section);
  if (!names) return names;
  const bool is64 = image.elf_class() == ElfClass::k64;
  const size_t entry_size = is64 ? sizeof(Elf64_Sym) : sizeof(Elf32_Sym);
  const auto table = SectionBytes::Open(source, image, section);
  if (!table) return Fail(table.error());
  const uint64_t count = table->size() / entry_size;
  if (count > kMaxSymbols) {
    return Fail(ErrorCode::kLimit, std::to_string(count) + " symbols");
  }
  std::vector<std::byte> block(kBlockBytes / entry_size * entry_size);
  uint32_t file = 0;
  const bool is_relocatable = IsRelocatable(source);
  for (uint64_t at = 0; at < count * entry_size; at += block.size()) {
    const uint64_t left = count * entry_size - at;
    const auto bytes = std::span(block).first(
        static_cast<size_t>(std::min<uint64_t>(left, block.size())));
    const auto read = table->ReadAt(at, bytes);
    if (!read) return read;
    ByteReader in(bytes);
    while (in.remaining() >= entry_size) {
      auto symbol = RawSymbol::Parse(in, image.elf_class());
      // It precedes the local symbols of its file (System V ABI, "Symbol
      // Table").
      if (symbol.type() == STT_FILE) file = symbol.name;
      if (is_relocatable && symbol.section < image.sections().size()) {
        symbol.value += image.sections()[symbol.section].address.value;
      }
      Add(symbol, image, symbol.IsLocal() ? file : 0);
    }
  }
  return {};
}

void LinkerSymbols::Add(const RawSymbol& symbol, const ElfImage& image,
                        uint32_t file) {
  const bool defined =
      symbol.section != SHN_UNDEF && symbol.section < image.sections().size();
  if (!defined || !symbol.NamesPlace() || symbol.name >= names_.size()) return;
  if (symbol.type() == STT_NOTYPE) {
    const std::string_view name = NameAt(symbol.name);
    if (IsMappingSymbol(image, name)) return;
    // Before a larger symbol at the same place takes it.
    if (name == "_stext" && !symbol.IsLocal()) {
      kernel_text_ = ElfAddress{symbol.value};
    }
  }
  const ElfSection& section = image.sections()[symbol.section];
  // Bit 0 says that a function is Thumb code (ELF for the Arm Architecture).
  const bool thumb = image.machine() == EM_ARM && symbol.type() == STT_FUNC;
  Entry entry;
  entry.start = thumb ? symbol.value & ~uint64_t{1} : symbol.value;
  entry.size = symbol.size;
  entry.section_end = section.address.value + section.size;
  entry.name = symbol.name;
  entry.file = file;
  entries_.push_back(entry);
}

void LinkerSymbols::Finish() {
  std::ranges::stable_sort(entries_, {}, [](const Entry& entry) {
    // The last one of each start is kept: the largest, and of equal ones the
    // last.
    return std::tuple(entry.start, entry.size);
  });
  auto out = entries_.begin();
  for (auto in = entries_.begin(); in != entries_.end(); ++in) {
    const auto next = in + 1;
    if (next != entries_.end() && next->start == in->start) continue;
    *out = *in;
    // The next symbol ends it anyway, as Find() takes the one that starts last.
    if (out->size == 0 && out->section_end > out->start) {
      out->size = out->section_end - out->start;
    }
    ++out;
  }
  entries_.erase(out, entries_.end());
  entries_.shrink_to_fit();
}

std::optional<LinkerSymbol> LinkerSymbols::Find(ElfAddress address) const {
  const auto next =
      std::ranges::upper_bound(entries_, address.value, {}, &Entry::start);
  if (next == entries_.begin()) return std::nullopt;
  const Entry& entry = *(next - 1);
  if (address.value - entry.start >= entry.size) return std::nullopt;
  return LinkerSymbol{NameAt(entry.name), NameAt(entry.file), {entry.start}};
}

std::string_view LinkerSymbols::NameAt(uint32_t offset) const {
  if (offset >= names_.size()) return {};
  const std::string_view rest =
      std::string_view(names_).substr(offset, kMaxNameBytes);
  return rest.substr(0, rest.find('\0'));
}

}  // namespace ksym
