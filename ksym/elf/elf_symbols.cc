#include "ksym/elf/elf_symbols.h"

#include <elf.h>

#include <algorithm>
#include <span>
#include <string_view>
#include <utility>

#include "ksym/elf/symbol_reader.h"

namespace ksym {
Result<ElfSymbols> ElfSymbols::Load(ByteSource source) {
  auto image = ElfImage::Parse(source);
  if (!image) return Fail(std::move(image.error()));
  ElfSymbols symbols(std::move(source));
  symbols.segments_ = image->segments();
  symbols.build_id_ = ToHex(image->build_id());
  if (!image->section_error()) return Fail(image->section_error().error());
  const auto read = symbols.ReadTables(*image);
  if (!read) return Fail(read.error());
  return symbols;
}

Status ElfSymbols::ReadTables(const ElfImage& image) {
  SymbolReader reader(source_, image);
  for (const ElfSection& section : image.sections()) {
    if (section.type != SHT_SYMTAB && section.type != SHT_DYNSYM) continue;
    const auto table =
        section.type == SHT_SYMTAB ? NameTable::kSymtab : NameTable::kDynamic;
    Strings& strings = strings_[static_cast<size_t>(table)];
    // The ABI allows one of each; a second one's names would be read from
    // the first one's strings.
    if (strings.size != 0) continue;
    const auto read = reader.ReadSymbols(section, table);
    if (!read) return read;
    if (section.link < image.sections().size()) {
      const ElfSection& link = image.sections()[section.link];
      strings = {link.file_offset, link.size};
    }
  }
  strings_[static_cast<size_t>(NameTable::kPlt)] =
      strings_[static_cast<size_t>(NameTable::kDynamic)];
  const auto stubs = reader.ReadPltStubs();
  if (!stubs) return stubs;
  table_ = SymbolTable::Build(std::move(reader).Take());
  return {};
}

std::optional<SymbolTable::Match> ElfSymbols::Find(FileOffset offset) const {
  const auto address = ToElfAddress(segments_, offset);
  if (!address) return std::nullopt;
  return table_.Find(*address);
}

Result<std::string> ElfSymbols::ReadString(
    const SymbolTable::Name& name) const {
  const Strings& strings = strings_[static_cast<size_t>(name.table)];
  if (name.offset >= strings.size) {
    return Fail(ErrorCode::kCorrupt, "a name is outside its string table");
  }
  const uint64_t limit =
      std::min<uint64_t>(strings.size - name.offset, kMaxNameBytes);
  std::string text;
  size_t step = 128;  // most names fit
  while (text.size() < limit) {
    const size_t used = text.size();
    const auto want =
        static_cast<size_t>(std::min<uint64_t>(step, limit - used));
    text.resize(used + want);
    const auto read = source_.ReadSomeAt(
        strings.file_offset + name.offset + used,
        std::as_writable_bytes(std::span(text).subspan(used)));
    if (!read) return Fail(read.error());
    text.resize(used + *read);
    const size_t end = text.find('\0', used);
    if (end != std::string::npos) text.resize(end);
    if (end != std::string::npos || *read < want) break;
    step *= 4;
  }
  if (name.table == NameTable::kPlt && !text.empty()) text += "@plt";
  return text;
}

Result<std::string> ElfSymbols::ReadName(
    const SymbolTable::Match& match) const {
  std::string best;
  SymbolBinding best_binding = SymbolBinding::kLocal;
  for (size_t i = 0; i < table_.AliasCount(match); ++i) {
    const SymbolTable::Name alias = table_.alias(match, i);
    auto name = ReadString(alias);
    if (!name) return name;
    if (name->empty()) continue;
    if (best.empty() ||
        IsPreferredAlias({*name, alias.binding}, {best, best_binding})) {
      best = std::move(*name);
      best_binding = alias.binding;
    }
  }
  if (best.empty()) {
    return Fail(ErrorCode::kCorrupt, "a symbol's name is empty");
  }
  return best;
}

size_t ElfSymbols::memory_bytes() const {
  return sizeof(*this) + table_.memory_bytes() + source_.memory_bytes() +
         segments_.capacity() * sizeof(ElfSegment);
}

}  // namespace ksym
