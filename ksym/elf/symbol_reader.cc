// SPDX-License-Identifier: Apache-2.0
#include "ksym/elf/symbol_reader.h"

#include <elf.h>

#include <algorithm>
#include <array>
#include <span>
#include <string_view>

#include "ksym/base/byte_reader.h"
#include "ksym/elf/relocatable.h"

namespace ksym {
namespace {

constexpr size_t kBlockBytes = size_t{64} << 10;

SymbolBinding BindingOf(uint8_t info) {
  switch (ELF64_ST_BIND(info)) {
    case STB_GLOBAL:
    case STB_GNU_UNIQUE:
      return SymbolBinding::kGlobal;
    case STB_WEAK:
      return SymbolBinding::kWeak;
    default:
      return SymbolBinding::kLocal;
  }
}

// "$x", "$d", "$t", "$a" and "$x.suffix" mark what kind of bytes follow (ELF
// for the Arm Architecture, "Mapping symbols"); ".L" begins a label that the
// assembler was asked to keep.
bool IsIgnoredLocal(std::string_view start_of_name) {
  if (start_of_name.empty() || start_of_name[0] == '\0') return true;
  if (start_of_name.starts_with(".L")) return true;
  if (start_of_name.size() < 2 || start_of_name[0] != '$') return false;
  const bool marker =
      std::string_view("adtx").find(start_of_name[1]) != std::string_view::npos;
  if (!marker) return false;
  return start_of_name.size() == 2 || start_of_name[2] == '\0' ||
         start_of_name[2] == '.';
}

}  // namespace

size_t CountSymbolsAtMost(const ElfImage& image, uint64_t file_size) {
  uint64_t bytes = 0;
  for (const ElfSection& section : image.sections()) {
    if (section.type == SHT_SYMTAB || section.type == SHT_DYNSYM) {
      bytes += std::min(section.size, file_size);
    }
  }
  return static_cast<size_t>(
      std::min(std::min(bytes, file_size) / sizeof(Elf32_Sym), kMaxSymbols));
}

struct SymbolReader::RawSymbol {
  uint32_t name = 0;
  uint8_t info = 0;
  uint16_t section = 0;
  uint64_t value = 0;
  uint64_t size = 0;

  static RawSymbol Parse(ByteReader& in, ElfClass elf_class);
  bool IsLabel() const;
  bool IsCode(NameTable table) const;
  bool IsInCode(const ElfImage& image) const;
};

SymbolReader::RawSymbol SymbolReader::RawSymbol::Parse(ByteReader& in,
                                                       ElfClass elf_class) {
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

bool SymbolReader::RawSymbol::IsLabel() const {
  return ELF64_ST_TYPE(info) == STT_NOTYPE && size == 0;
}

bool SymbolReader::RawSymbol::IsCode(NameTable table) const {
  switch (ELF64_ST_TYPE(info)) {
    case STT_FUNC:
    case STT_GNU_IFUNC:
      return true;
    case STT_NOTYPE:
      return name != 0 && (!IsLabel() || table != NameTable::kDynamic);
    default:
      return false;
  }
}

// Addresses alone do not tell: sections that are not loaded begin at 0, where
// the code of a library is.
bool SymbolReader::RawSymbol::IsInCode(const ElfImage& image) const {
  // Its number is in another table, which only files of many sections have.
  if (section == SHN_XINDEX) return true;
  const auto& sections = image.sections();
  return section != SHN_UNDEF && section < sections.size() &&
         (sections[section].flags & SHF_EXECINSTR) != 0;
}

SymbolReader::SymbolReader(const ByteSource& source, const ElfImage& image)
    : source_(source),
      image_(image),
      code_(image),
      is_relocatable_(IsRelocatable(source)) {
  // Growing in steps would double what a large table needs at once; pages of a
  // reservation that are not used cost nothing.
  symbols_.reserve(CountSymbolsAtMost(image, source.size()));
}

// Goes over the local symbols in the order of their names' places, so that
// the string table is read in blocks and once, and drops the ignored ones.
void SymbolReader::DropIgnoredLocals(const SectionBytes& strings,
                                     size_t first) {
  std::vector<uint32_t> locals;
  for (size_t i = first; i < symbols_.size(); ++i) {
    if (symbols_[i].binding == SymbolBinding::kLocal) {
      locals.push_back(static_cast<uint32_t>(i));
    }
  }
  std::sort(locals.begin(), locals.end(), [this](uint32_t a, uint32_t b) {
    return symbols_[a].name < symbols_[b].name;
  });
  constexpr size_t kLookAt = 3;
  std::vector<std::byte> block(locals.empty() ? 0 : kBlockBytes);
  uint64_t block_start = 0;
  uint64_t block_end = 0;
  bool at_end = false;  // no byte of the table is behind the block
  for (const uint32_t i : locals) {
    const uint64_t name = symbols_[i].name;
    if (name + kLookAt > block_end && !at_end) {
      block_start = name;
      block_end = name + strings.ReadSomeAt(name, block).value_or(0);
      at_end = block_end < name + block.size();
    }
    const uint64_t at = std::min(name, block_end) - block_start;
    const uint64_t length = std::min(kLookAt, block_end - block_start - at);
    const std::string_view text(
        reinterpret_cast<const char*>(block.data()) + at, length);
    const bool mark = symbols_[i].label && text.starts_with('.');
    if (mark || IsIgnoredLocal(text)) symbols_[i].end = symbols_[i].start;
  }
  // Build() leaves empty symbols out.
}

void SymbolReader::AddSymbol(const RawSymbol& symbol, NameTable table) {
  // Bit 0 of an Arm function's value says that it is Thumb code.
  uint64_t start =
      image_.machine() == EM_ARM ? symbol.value & ~uint64_t{1} : symbol.value;
  if (is_relocatable_) {
    if (symbol.section >= SHN_LORESERVE ||
        symbol.section >= image_.sections().size()) {
      return;
    }
    const ElfSection& section = image_.sections()[symbol.section];
    // Added up it would be in the section that was laid out behind.
    if (start >= section.size) return;
    start += section.address.value;
  }
  const CodeRanges::Range* range = code_.Find(start);
  if (range == nullptr) return;
  SymbolCandidate candidate;
  candidate.start = {start};
  candidate.sized = symbol.size > 0;
  candidate.label = symbol.IsLabel();
  candidate.end = {range->end};
  if (candidate.sized && symbol.size < range->end - start) {
    candidate.end = candidate.start + symbol.size;
  }
  candidate.name = symbol.name;
  candidate.table = table;
  candidate.binding = BindingOf(symbol.info);
  symbols_.push_back(candidate);
}

Status SymbolReader::ReadSymbols(const ElfSection& section,
                                 const SectionBytes& strings, NameTable table) {
  const bool is64 = image_.elf_class() == ElfClass::k64;
  const size_t entry_size = is64 ? sizeof(Elf64_Sym) : sizeof(Elf32_Sym);
  if (section.type == SHT_NOBITS) return {};
  if (section.entry_size != entry_size) {
    return Fail(ErrorCode::kCorrupt, "sh_entsize of a symbol table is " +
                                         std::to_string(section.entry_size));
  }
  const auto symbols = SectionBytes::Open(source_, image_, section);
  if (!symbols) return Fail(symbols.error());
  const uint64_t count = symbols->size() / entry_size;
  if (count > kMaxSymbols) {
    return Fail(ErrorCode::kLimit, std::to_string(count) + " symbols");
  }
  // Only this section's from here on: the offsets of an earlier one's names are
  // in another string table.
  const size_t first = symbols_.size();
  std::vector<std::byte> block(kBlockBytes / entry_size * entry_size);
  for (uint64_t at = 0; at < count * entry_size; at += block.size()) {
    const uint64_t left = count * entry_size - at;
    const auto bytes = std::span(block).first(
        static_cast<size_t>(std::min<uint64_t>(left, block.size())));
    const auto read = symbols->ReadAt(at, bytes);
    if (!read) return read;
    ByteReader in(bytes);
    while (in.remaining() >= entry_size) {
      const auto symbol = RawSymbol::Parse(in, image_.elf_class());
      if (symbol.IsCode(table) && symbol.IsInCode(image_) &&
          symbol.name < strings.size()) {
        AddSymbol(symbol, table);
      }
    }
  }
  DropIgnoredLocals(strings, first);
  return {};
}

}  // namespace ksym
