// SPDX-License-Identifier: Apache-2.0
#include "ksym/dwarf/abbreviations.h"

#include <dwarf.h>

#include <algorithm>
#include <limits>

namespace ksym {
namespace {

// What is known of a form's size.
struct FormSize {
  enum class Kind : uint8_t { kBytes, kAddress, kOffset, kVaries };
  Kind kind = Kind::kVaries;
  uint8_t bytes = 0;
};

FormSize SizeOf(uint16_t form) {
  using Kind = FormSize::Kind;
  switch (form) {
    // An entry has no bytes of these: the one is true by being there, the
    // other's value is in the abbreviation (DWARF 5, section 7.5.3).
    case DW_FORM_flag_present:
    case DW_FORM_implicit_const:
      return {Kind::kBytes, 0};
    case DW_FORM_data1:
    case DW_FORM_flag:
    case DW_FORM_ref1:
    case DW_FORM_strx1:
    case DW_FORM_addrx1:
      return {Kind::kBytes, 1};
    case DW_FORM_data2:
    case DW_FORM_ref2:
    case DW_FORM_strx2:
    case DW_FORM_addrx2:
      return {Kind::kBytes, 2};
    case DW_FORM_strx3:
    case DW_FORM_addrx3:
      return {Kind::kBytes, 3};
    case DW_FORM_data4:
    case DW_FORM_ref4:
    case DW_FORM_ref_sup4:
    case DW_FORM_strx4:
    case DW_FORM_addrx4:
      return {Kind::kBytes, 4};
    case DW_FORM_data8:
    case DW_FORM_ref8:
    case DW_FORM_ref_sig8:
    case DW_FORM_ref_sup8:
      return {Kind::kBytes, 8};
    case DW_FORM_data16:
      return {Kind::kBytes, 16};
    case DW_FORM_addr:
      return {Kind::kAddress, 0};
    case DW_FORM_strp:
    case DW_FORM_line_strp:
    case DW_FORM_strp_sup:
    case DW_FORM_sec_offset:
    case DW_FORM_GNU_ref_alt:
    case DW_FORM_GNU_strp_alt:
      return {Kind::kOffset, 0};
    default:
      return {Kind::kVaries, 0};
  }
}

}  // namespace

bool SkipForm(uint16_t form, const UnitFormat& format, ByteCursor& in) {
  const FormSize size = SizeOf(form);
  switch (size.kind) {
    case FormSize::Kind::kBytes:
      in.Skip(size.bytes);
      return true;
    case FormSize::Kind::kAddress:
      in.Skip(format.address_bytes);
      return true;
    case FormSize::Kind::kOffset:
      in.Skip(format.offset_bytes);
      return true;
    case FormSize::Kind::kVaries:
      break;
  }
  switch (form) {
    case DW_FORM_block1:
      in.Skip(in.Read<uint8_t>());
      return true;
    case DW_FORM_block2:
      in.Skip(in.Read<uint16_t>());
      return true;
    case DW_FORM_block4:
      in.Skip(in.Read<uint32_t>());
      return true;
    case DW_FORM_block:
    case DW_FORM_exprloc:
      in.Skip(in.ReadUleb128());
      return true;
    case DW_FORM_string:
      in.ReadCString();
      return true;
    case DW_FORM_sdata:
    case DW_FORM_udata:
    case DW_FORM_ref_udata:
    case DW_FORM_strx:
    case DW_FORM_addrx:
    case DW_FORM_loclistx:
    case DW_FORM_rnglistx:
    case DW_FORM_GNU_addr_index:
    case DW_FORM_GNU_str_index:
      in.SkipLeb128();
      return true;
    case DW_FORM_ref_addr:  // DWARF 2 has it as wide as an address
      in.Skip(format.version <= 2 ? format.address_bytes : format.offset_bytes);
      return true;
    case DW_FORM_indirect: {
      const uint64_t real = in.ReadUleb128();
      // Otherwise a file could nest calls as deep as it is long.
      return real != DW_FORM_indirect &&
             real <= std::numeric_limits<uint16_t>::max() &&
             SkipForm(static_cast<uint16_t>(real), format, in);
    }
    default:
      return false;
  }
}

bool AbbreviationTable::ParseAttributes(ByteCursor& in,
                                        Abbreviation& abbreviation) {
  while (in.ok()) {
    const uint64_t name = in.ReadUleb128();
    const uint64_t form = in.ReadUleb128();
    if (name == 0 && form == 0) return in.ok();
    // The last attribute there can be is 0x3fff (section 7.5.4, DW_AT_hi_user);
    // more is malformed.
    constexpr uint64_t kMax = std::numeric_limits<uint16_t>::max();
    if (name > kMax || form > kMax) return false;
    AttributeSpec spec = {static_cast<uint16_t>(name),
                          static_cast<uint16_t>(form)};
    if (form == DW_FORM_implicit_const) spec.implicit_value = in.ReadSleb128();
    attributes_.push_back(spec);
    ++abbreviation.attribute_count;
    if (name == DW_AT_low_pc || name == DW_AT_ranges) {
      abbreviation.has_code = true;
    }
    // Most entries are passed over, so what their size is made of is added up
    // once here. Addresses and offsets are counted: units of two formats may
    // share the table.
    const FormSize size = SizeOf(spec.form);
    switch (size.kind) {
      case FormSize::Kind::kBytes:
        abbreviation.fixed_bytes += size.bytes;
        break;
      case FormSize::Kind::kAddress:
        ++abbreviation.address_count;
        break;
      case FormSize::Kind::kOffset:
        ++abbreviation.offset_count;
        break;
      case FormSize::Kind::kVaries:
        abbreviation.is_fixed = false;
        break;
    }
  }
  return false;
}

bool AbbreviationTable::Parse(ByteCursor& in) {
  while (in.ok()) {
    const uint64_t code = in.ReadUleb128();
    if (code == 0) break;
    Abbreviation entry;
    const uint64_t tag = in.ReadUleb128();
    // A tag that is too large must not wrap into one that means something.
    entry.tag = static_cast<uint16_t>(
        std::min<uint64_t>(tag, std::numeric_limits<uint16_t>::max()));
    entry.has_children = in.Read<uint8_t>() != 0;
    entry.first_attribute = static_cast<uint32_t>(attributes_.size());
    if (!ParseAttributes(in, entry)) return false;
    if (entry.tag == DW_TAG_subprogram && entry.has_code) {
      has_function_code_ = true;
    }
    // After one code out of the row none is dense any more: Find() takes a code
    // for an index only where all before it are.
    if (code == entries_.size() + 1 && other_codes_.empty()) {
      ++dense_count_;
    } else {
      other_codes_.emplace_back(code, static_cast<uint32_t>(entries_.size()));
    }
    entries_.push_back(entry);
  }
  std::ranges::sort(other_codes_);
  return in.ok();
}

const Abbreviation* AbbreviationTable::Find(uint64_t code) const {
  // Code 0 wraps and is not found.
  if (code - 1 < dense_count_) return &entries_[code - 1];
  const auto found =
      std::ranges::lower_bound(other_codes_, std::pair(code, uint32_t{0}));
  if (found == other_codes_.end() || found->first != code) return nullptr;
  return &entries_[found->second];
}

bool SkipEntry(const AbbreviationTable& table, const Abbreviation& abbreviation,
               const UnitFormat& format, ByteCursor& in) {
  if (abbreviation.is_fixed) {
    in.Skip(abbreviation.FixedSize(format));
    return true;
  }
  for (const AttributeSpec& spec : table.Attributes(abbreviation)) {
    if (!SkipForm(spec.form, format, in)) return false;
  }
  return true;
}

}  // namespace ksym
