// SPDX-License-Identifier: Apache-2.0
#include "ksym/elf/elf_symbols.h"

#include <elf.h>

#include <algorithm>
#include <memory>
#include <span>
#include <string_view>
#include <utility>

#include "ksym/elf/go_symbols.h"
#include "ksym/elf/plt_reader.h"
#include "ksym/elf/symbol_reader.h"

namespace ksym {
namespace {

// Twice as a candidate, when those of a debug file join, and in the table.
constexpr size_t kBytesOfASymbol = 60;

const ElfSection* FindType(const ElfImage& image, uint32_t type) {
  for (const ElfSection& section : image.sections()) {
    if (section.type == type) return &section;
  }
  return nullptr;
}

// The names of the symbol table `symbols`.
Result<SectionBytes> OpenStrings(const ByteSource& source,
                                 const ElfImage& image,
                                 const ElfSection& symbols) {
  if (symbols.link >= image.sections().size()) {
    return Fail(ErrorCode::kCorrupt, "a symbol table has no string table");
  }
  return SectionBytes::Open(source, image, image.sections()[symbols.link]);
}

}  // namespace

Result<ElfSymbols> ElfSymbols::Load(ByteSource source,
                                    const DebugFileFinder& finder,
                                    const TableRoom& room) {
  auto image = ElfImage::Parse(source);
  if (!image) return Fail(std::move(image.error()));
  ElfSymbols symbols(std::move(source));
  symbols.segments_ = image->segments();
  symbols.build_id_ = ToHex(image->build_id());
  if (!image->section_error()) return Fail(image->section_error().error());
  const auto read = symbols.ReadTables(*image, finder, room);
  if (!read) return Fail(read.error());
  return symbols;
}

Status ElfSymbols::ReadTables(const ElfImage& image,
                              const DebugFileFinder& finder,
                              const TableRoom& room) {
  std::vector<SymbolCandidate> candidates;
  // One at a time: who waits has none.
  std::shared_ptr<void> held;
  size_t symbols = 0;
  const auto make_room_for = [&](size_t more) {
    symbols += more;
    held.reset();
    if (room) held = room(symbols * kBytesOfASymbol);
  };
  make_room_for(CountSymbolsAtMost(image, source_.size()));
  const auto read = ReadOwnSymbols(image, candidates);
  if (!read) return read;
  has_full_table_ =
      std::any_of(candidates.begin(), candidates.end(),
                  [](const auto& c) { return c.table == NameTable::kSymtab; });
  const auto add = [&](Result<ByteSource> debug) {
    if (!debug) return false;
    const auto headers = ElfImage::Parse(*debug);
    if (!headers) return false;
    make_room_for(CountSymbolsAtMost(*headers, debug->size()));
    return AddDebugSymbols(std::move(*debug), candidates);
  };
  if (!has_full_table_) {
    // A debug file has all symbols, .gnu_debugdata those of functions, a Go
    // table Go's own. What is fetched may take long and is last.
    auto debug = FindDebugFile(source_, image, finder);
    if (!debug) debug = UnpackDebugData(source_, image);
    has_full_table_ = add(std::move(debug)) ||
                      AddGoFunctions(image, candidates) ||
                      add(FetchDebugFile(image, finder));
  }
  table_ = SymbolTable::Build(std::move(candidates));
  return {};
}

Status ElfSymbols::ReadOwnSymbols(const ElfImage& image,
                                  std::vector<SymbolCandidate>& candidates) {
  SymbolReader reader(source_, image);
  // The ABI allows one table of each type.
  for (const auto& [type, table] :
       {std::pair(uint32_t{SHT_SYMTAB}, NameTable::kSymtab),
        std::pair(uint32_t{SHT_DYNSYM}, NameTable::kDynamic)}) {
    const ElfSection* section = FindType(image, type);
    if (section == nullptr) continue;
    auto names = OpenStrings(source_, image, *section);
    if (!names) return Fail(std::move(names.error()));
    const auto read = reader.ReadSymbols(*section, *names, table);
    if (!read) return read;
    Strings& strings = strings_[static_cast<size_t>(table)];
    strings = {Strings::Place::kFile,
               image.sections()[section->link].file_offset, names->size()};
    if (!names->is_unpacked()) continue;
    if (table == NameTable::kDynamic) {
      return Fail(ErrorCode::kCorrupt,
                  "the dynamic linker cannot unpack names");
    }
    strings = {Strings::Place::kBeside, 0, names->size()};
    beside_ = std::move(*names).TakeUnpacked();
  }
  // Stubs are named for dynamic symbols.
  strings_[static_cast<size_t>(NameTable::kPlt)] =
      strings_[static_cast<size_t>(NameTable::kDynamic)];
  candidates = std::move(reader).Take();
  return AddPltStubs(source_, image, candidates);
}

bool ElfSymbols::AddDebugSymbols(ByteSource debug,
                                 std::vector<SymbolCandidate>& candidates) {
  const auto image = ElfImage::Parse(debug);
  if (!image) return false;
  const ElfSection* symtab = FindType(*image, SHT_SYMTAB);
  if (symtab == nullptr) return false;
  auto names = OpenStrings(debug, *image, *symtab);
  if (!names) return false;
  SymbolReader reader(debug, *image);
  if (!reader.ReadSymbols(*symtab, *names, NameTable::kDebug)) return false;
  const auto added = std::move(reader).Take();
  if (added.empty()) return false;
  // beside_ is free: only a file without a full table of its own comes here.
  Strings& strings = strings_[static_cast<size_t>(NameTable::kDebug)];
  strings = {Strings::Place::kBeside, 0, names->size()};
  if (names->is_unpacked()) {
    beside_ = std::move(*names).TakeUnpacked();
  } else if (debug.fd() >= 0) {
    strings.file_offset = image->sections()[symtab->link].file_offset;
    beside_ = std::move(debug);
  } else {
    // Only the names of an unpacked image are needed from now on.
    if (names->size() > debug.size()) return false;
    std::string text(static_cast<size_t>(names->size()), '\0');
    const auto bytes = std::as_writable_bytes(std::span(text));
    if (!names->ReadAt(0, bytes)) return false;
    beside_ = ByteSource::OfMemory(std::move(text));
  }
  candidates.insert(candidates.end(), added.begin(), added.end());
  return true;
}

bool ElfSymbols::AddGoFunctions(const ElfImage& image,
                                std::vector<SymbolCandidate>& candidates) {
  const auto functions = ReadGoFunctions(source_, image);
  if (!functions || functions->candidates.empty()) return false;
  // No candidate is of .symtab here, so its place is free.
  strings_[static_cast<size_t>(NameTable::kSymtab)] = {
      Strings::Place::kFile, functions->names_offset, functions->names_size};
  candidates.insert(candidates.end(), functions->candidates.begin(),
                    functions->candidates.end());
  return true;
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
  const ByteSource& source =
      strings.place == Strings::Place::kBeside ? beside_ : source_;
  const uint64_t limit =
      std::min<uint64_t>(strings.size - name.offset, kMaxNameBytes);
  std::string text;
  size_t step = 128;  // most names fit
  while (text.size() < limit) {
    const size_t used = text.size();
    const auto want =
        static_cast<size_t>(std::min<uint64_t>(step, limit - used));
    text.resize(used + want);
    const auto read = source.ReadSomeAt(
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
         beside_.memory_bytes() + segments_.capacity() * sizeof(ElfSegment);
}

}  // namespace ksym
