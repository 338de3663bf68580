// SPDX-License-Identifier: Apache-2.0
#include "daemon/naming/module_symbols.h"

#include <elf.h>

#include <algorithm>
#include <span>
#include <utility>

#include "ksym/base/byte_cursor.h"
#include "ksym/elf/code_ranges.h"
#include "ksym/elf/section_bytes.h"
#include "ksym/elf/symbol_reader.h"

namespace profd {
namespace {

// The largest modules have some MB of names.
constexpr uint64_t kMaxNameBytes = uint64_t{64} << 20;

const ksym::ElfSection* FindTable(const ksym::ElfImage& image) {
  const auto& sections = image.sections();
  const auto table = std::ranges::find(sections, uint32_t{SHT_SYMTAB},
                                       &ksym::ElfSection::type);
  if (table == sections.end() || table->link >= sections.size()) return nullptr;
  return &*table;
}

}  // namespace

ksym::Status ModuleSymbols::ReadNames(const ksym::ByteSource& source,
                                      const ksym::ElfImage& image,
                                      const ksym::ElfSection& table) {
  const auto strings =
      ksym::SectionBytes::Open(source, image, image.sections()[table.link]);
  if (!strings) return ksym::Fail(strings.error());
  if (strings->size() > std::min(kMaxNameBytes, source.size())) {
    return ksym::Fail(ksym::ErrorCode::kLimit, "too many names");
  }
  names_.resize(static_cast<size_t>(strings->size()));
  auto status = strings->ReadAt(0, names_);
  if (!status) return status;
  ksym::SymbolReader reader(source, image);
  status = reader.ReadSymbols(table, *strings, ksym::NameTable::kSymtab);
  if (!status) return status;
  const ksym::CodeRanges code(image);
  for (const ksym::SymbolCandidate& read : std::move(reader).Take()) {
    ksym::ByteCursor in(names_);
    in.Seek(read.name);
    const std::string_view name = in.ReadCString();
    const auto* section = code.Find(read.start.value);
    if (name.empty() || section == nullptr || read.end <= read.start) continue;
    symbols_.push_back({read.start.value, section->start, section->end, name});
  }
  return {};
}

void ModuleSymbols::Index() {
  std::ranges::stable_sort(symbols_, {}, &Symbol::start);
  for (uint32_t i = 0; i < symbols_.size(); ++i) {
    auto& same = by_name_[symbols_[i].name];
    // Listed twice is once.
    const bool is_new =
        same.empty() || symbols_[same.back()].start != symbols_[i].start;
    if (is_new) same.push_back(i);
  }
  for (size_t i = 0; i < symbols_.size(); ++i) {
    const uint64_t start = symbols_[i].start;
    const bool is_alone =
        (i == 0 || symbols_[i - 1].start != start) &&
        (i + 1 == symbols_.size() || symbols_[i + 1].start != start);
    symbols_[i].is_landmark =
        is_alone && by_name_[symbols_[i].name].size() == 1;
  }
}

ksym::Result<ModuleSymbols> ModuleSymbols::Load(const ksym::ByteSource& source,
                                                const ksym::ElfImage& image) {
  ModuleSymbols symbols;
  const ksym::ElfSection* table = FindTable(image);
  if (table == nullptr) {
    return ksym::Fail(ksym::ErrorCode::kNotFound, "no symbol table");
  }
  auto status = symbols.ReadNames(source, image, *table);
  if (!status) return ksym::Fail(std::move(status.error()));
  symbols.Index();
  return symbols;
}

// Whether what is next to a function in its section is so in the kernel, too,
// if the function is at `start` there.
bool ModuleSymbols::IsLandmarkThere(const Symbol& symbol, ksym::Address start,
                                    const IsThere& is_there) const {
  const Symbol* nearest = nullptr;
  const auto at = static_cast<size_t>(&symbol - symbols_.data());
  const auto is_beside = [&](size_t i) {
    return symbols_[i].section_start == symbol.section_start;
  };
  for (size_t i = at + 1; i < symbols_.size() && is_beside(i); ++i) {
    if (!symbols_[i].is_landmark) continue;
    nearest = &symbols_[i];
    break;
  }
  for (size_t i = at; nearest == nullptr && i > 0 && is_beside(i - 1); --i) {
    if (symbols_[i - 1].is_landmark) nearest = &symbols_[i - 1];
  }
  if (nearest == nullptr) return false;
  const uint64_t place = start.value + (nearest->start - symbol.start);
  return is_there({place}, nearest->name);
}

std::optional<ksym::ElfAddress> ModuleSymbols::Find(
    std::string_view name, ksym::Address start, uint64_t offset,
    const IsThere& is_there) const {
  const auto found = by_name_.find(name);
  if (found == by_name_.end()) return std::nullopt;
  const Symbol* symbol = nullptr;
  for (const uint32_t i : found->second) {
    const bool is_it = found->second.size() == 1 ||
                       IsLandmarkThere(symbols_[i], start, is_there);
    if (!is_it) continue;
    // Two that fit are none: either could be the wrong one.
    if (symbol != nullptr) return std::nullopt;
    symbol = &symbols_[i];
  }
  if (symbol == nullptr || offset >= symbol->section_end - symbol->start) {
    return std::nullopt;
  }
  return ksym::ElfAddress{symbol->start + offset};
}

}  // namespace profd
