// SPDX-License-Identifier: Apache-2.0
#include "ksym/dwarf/entry_names.h"

#include <dwarf.h>

#include <optional>
#include <utility>

namespace ksym {
namespace {

// Entries of a chain from a function to its name.
constexpr int kMaxReferences = 16;
constexpr int kMaxScopes = 64;
// Longer ones are not worth their bytes: the function's own name has to do.
constexpr size_t kMaxScopedBytes = 4096;
// Hostile data can put every function into one long scope.
constexpr size_t kTimesUnit = 4;
constexpr size_t kMinBytes = size_t{64} << 10;

bool HasScopes(uint16_t language) {
  switch (language) {
    case DW_LANG_C_plus_plus:
    case DW_LANG_C_plus_plus_03:
    case DW_LANG_C_plus_plus_11:
    case DW_LANG_C_plus_plus_14:
    case 0x2b:  // DW_LANG_C_plus_plus_17, which elfutils 0.188 does not know
    case 0x2c:  // DW_LANG_C_plus_plus_20
    case DW_LANG_ObjC_plus_plus:
    case DW_LANG_Rust:
    case 0:  // of a unit that several share
      return true;
    default:
      return false;
  }
}

struct NameAttributes {
  FormValue name;
  FormValue linkage_name;
  FormValue origin;

  bool Read(const DwarfUnit& unit, const Abbreviation& abbreviation,
            ByteCursor& in) {
    for (const AttributeSpec& spec :
         unit.abbreviations->Attributes(abbreviation)) {
      FormValue* value = Find(spec.name);
      const bool ok = value != nullptr ? ReadForm(spec, unit.format, in, *value)
                                       : SkipForm(spec.form, unit.format, in);
      if (!ok) return false;
    }
    return in.ok();
  }

 private:
  FormValue* Find(uint16_t attribute) {
    switch (attribute) {
      case DW_AT_name:
        return &name;
      case DW_AT_linkage_name:
      case DW_AT_MIPS_linkage_name:
        return &linkage_name;
      case DW_AT_abstract_origin:
      case DW_AT_specification:
        return &origin;
      default:
        return nullptr;
    }
  }
};

}  // namespace

EntryNames::EntryNames(const DwarfFile& file, const DwarfUnit& unit,
                       std::deque<std::string>* made)
    : file_(file),
      made_(made),
      bytes_left_(kMinBytes +
                  kTimesUnit * static_cast<size_t>(unit.end - unit.offset)) {}

EntryNames::Description EntryNames::Describe(DwarfFile::Reference at,
                                             Upto upto) {
  Description found;
  for (int i = 0; i < kMaxReferences; ++i) {
    const DwarfUnit* unit = at.file->FindUnit(at.offset);
    if (unit == nullptr || at.offset < unit->first_entry) break;
    ByteCursor in(at.file->info().first(static_cast<size_t>(unit->end)));
    in.Seek(at.offset);
    const Abbreviation* abbreviation =
        unit->abbreviations->Find(in.ReadUleb128());
    NameAttributes entry;
    if (abbreviation == nullptr || !entry.Read(*unit, *abbreviation, in)) break;
    found.last = at;
    found.tag = abbreviation->tag;
    if (found.source_name.empty()) {
      found.source_name = at.file->String(*unit, entry.name);
    }
    found.linkage_name = at.file->String(*unit, entry.linkage_name);
    if (upto == Upto::kLinkageName && !found.linkage_name.empty()) break;
    const auto next = at.file->Refer(*unit, entry.origin);
    if (!next) break;
    at = *next;
  }
  return found;
}

std::string_view EntryNames::WithScopes(const Description& function) {
  std::string text;
  DwarfFile::Reference at = function.last;
  auto of = EntryScopes::Of::kFunction;
  for (int i = 0; i < kMaxScopes && at.file != nullptr; ++i) {
    const DwarfUnit* unit = at.file->FindUnit(at.offset);
    if (unit == nullptr || !HasScopes(unit->language)) break;
    const auto entry = at.file->ScopesOf(*unit).Find(at.offset, of);
    if (!entry) break;
    const Description scope = Describe({at.file, *entry}, Upto::kEnd);
    std::string_view name = scope.source_name;
    if (name.empty() && scope.tag == DW_TAG_namespace) {
      name = "(anonymous namespace)";
    }
    if (name.size() + text.size() > kMaxScopedBytes) {
      return function.source_name;
    }
    if (!name.empty()) text.insert(0, std::string(name) + "::");
    of = scope.tag == DW_TAG_subprogram ? EntryScopes::Of::kFunction
                                        : EntryScopes::Of::kType;
    at = scope.last;
  }
  const size_t bytes = text.size() + function.source_name.size();
  if (text.empty() || bytes > bytes_left_) return function.source_name;
  bytes_left_ -= bytes;
  return made_->emplace_back(std::move(text += function.source_name));
}

std::string_view EntryNames::Read(const DwarfFile& file, uint64_t offset) {
  const Description found = Describe({&file, offset}, Upto::kLinkageName);
  if (!found.linkage_name.empty()) return found.linkage_name;
  // Some compilers write the linkage name of a clone where the source name is.
  const bool has_scopes = made_ != nullptr && !found.source_name.empty() &&
                          !found.source_name.starts_with("_Z");
  return has_scopes ? WithScopes(found) : found.source_name;
}

std::string_view EntryNames::Find(const DwarfFile& file, uint64_t offset) {
  Names& names = &file == &file_ ? own_ : others_;
  const auto [place, is_new] = names.try_emplace(offset);
  if (is_new) place->second = Read(file, offset);
  return place->second;
}

}  // namespace ksym
