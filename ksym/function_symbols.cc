// SPDX-License-Identifier: Apache-2.0
#include "ksym/function_symbols.h"

#include <elf.h>

#include <algorithm>
#include <span>
#include <utility>
#include <vector>

#include "ksym/base/byte_cursor.h"
#include "ksym/elf/plt_reader.h"
#include "ksym/elf/section_bytes.h"
#include "ksym/elf/symbol_reader.h"

namespace ksym {
namespace {

// A string table that is read whole; the largest browsers' have 500 MB.
constexpr uint64_t kMaxNameBytes = uint64_t{1} << 30;

// The names of the symbols in `table`; empty where they cannot be read.
std::vector<std::byte> ReadNames(const ByteSource& source,
                                 const SectionBytes& strings) {
  if (strings.size() > kMaxNameBytes ||
      (!strings.is_unpacked() && strings.size() > source.size())) {
    return {};
  }
  std::vector<std::byte> names(static_cast<size_t>(strings.size()));
  if (!strings.ReadAt(0, names)) names.clear();
  return names;
}

std::string_view NameIn(std::span<const std::byte> names, uint32_t offset) {
  ByteCursor in(names);
  in.Seek(offset);
  return in.ReadCString();
}

uint64_t SizeOf(const FunctionSymbols::Symbol& symbol) {
  return symbol.is_sized ? symbol.end - symbol.start : 0;
}

}  // namespace

const ElfSection* FindSymbolSection(const ElfImage& image) {
  for (const uint32_t type : {SHT_SYMTAB, SHT_DYNSYM}) {
    for (const ElfSection& section : image.sections()) {
      if (section.type == type && section.size > 0) return &section;
    }
  }
  return nullptr;
}

void FunctionSymbols::Load(const ByteSource& source, const ElfImage& image) {
  symbols_.clear();
  stub_names_.clear();
  names_.clear();
  const ElfSection* table = FindSymbolSection(image);
  if (table == nullptr || table->link >= image.sections().size()) return;
  const auto strings =
      SectionBytes::Open(source, image, image.sections()[table->link]);
  if (!strings) return;
  names_ = ReadNames(source, *strings);
  SymbolReader reader(source, image);
  if (names_.empty() ||
      !reader.ReadSymbols(*table, *strings, NameTable::kSymtab)) {
    return;
  }
  for (const SymbolCandidate& symbol : std::move(reader).Take()) {
    const auto name = NameIn(names_, symbol.name);
    if (symbol.label || name.empty() || symbol.end <= symbol.start) continue;
    symbols_.push_back({.start = symbol.start.value,
                        .end = symbol.end.value,
                        .is_sized = symbol.sized,
                        .name = name});
  }
  std::ranges::stable_sort(symbols_, {}, &Symbol::start);
}

void FunctionSymbols::AddStubs(const ByteSource& source,
                               const ElfImage& image) {
  const ElfSection* dynsym = image.FindSection(".dynsym");
  if (dynsym == nullptr || dynsym->link >= image.sections().size()) return;
  const auto strings =
      SectionBytes::Open(source, image, image.sections()[dynsym->link]);
  std::vector<SymbolCandidate> stubs;
  if (!strings || !AddPltStubs(source, image, stubs)) return;
  const auto names = ReadNames(source, *strings);
  for (const SymbolCandidate& stub : stubs) {
    const auto name = NameIn(names, stub.name);
    if (name.empty()) continue;
    stub_names_.push_back(std::string(name) + "@plt");
    symbols_.push_back({.start = stub.start.value,
                        .end = stub.end.value,
                        .is_sized = true,
                        .name = stub_names_.back()});
  }
  std::ranges::stable_sort(symbols_, {}, &Symbol::start);
}

std::string_view FunctionSymbols::NameAt(uint64_t start,
                                         std::string_view otherwise) const {
  auto symbol = std::ranges::lower_bound(symbols_, start, {}, &Symbol::start);
  const Symbol* best = nullptr;
  for (; symbol != symbols_.end() && symbol->start == start; ++symbol) {
    // Equal ones too: the last one in the table is the answer.
    if (best == nullptr || SizeOf(*symbol) >= SizeOf(*best)) best = &*symbol;
  }
  return best == nullptr ? otherwise : best->name;
}

std::vector<uint64_t> FunctionSymbols::Edges() const {
  std::vector<uint64_t> edges;
  edges.reserve(symbols_.size() + symbols_.size() / 4);
  for (size_t i = 0; i < symbols_.size();) {
    const uint64_t start = symbols_[i].start;
    uint64_t size = 0;
    for (; i < symbols_.size() && symbols_[i].start == start; ++i) {
      size = std::max(size, SizeOf(symbols_[i]));
    }
    edges.push_back(start);
    const bool has_gap =
        i == symbols_.size() || symbols_[i].start - start > size;
    if (size > 0 && has_gap) edges.push_back(start + size);
  }
  return edges;
}

}  // namespace ksym
