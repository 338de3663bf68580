// SPDX-License-Identifier: Apache-2.0
// What the values of attributes mean: the second half of DwarfFile.

#include <dwarf.h>

#include <limits>

#include "ksym/dwarf/dwarf_file.h"

namespace ksym {
namespace {

// Three bytes, little-endian.
uint64_t ReadThreeBytes(ByteCursor& in) {
  const uint64_t low = in.Read<uint16_t>();
  return low | uint64_t{in.Read<uint8_t>()} << 16;
}

// The form is stored before the value.
bool ReadIndirectForm(const AttributeSpec& spec, const UnitFormat& format,
                      ByteCursor& in, FormValue& value) {
  const uint64_t real = in.ReadUleb128();
  if (real == DW_FORM_indirect || real == DW_FORM_implicit_const ||
      real > std::numeric_limits<uint16_t>::max()) {
    return false;
  }
  const AttributeSpec direct = {spec.name, static_cast<uint16_t>(real)};
  return DwarfFile::ReadForm(direct, format, in, value);
}

}  // namespace

bool DwarfFile::ReadForm(const AttributeSpec& spec, const UnitFormat& format,
                         ByteCursor& in, FormValue& value) {
  value.form = spec.form;
  switch (spec.form) {
    case DW_FORM_addr:
      value.number = in.ReadSized(format.address_bytes);
      return true;
    case DW_FORM_data1:
    case DW_FORM_flag:
    case DW_FORM_ref1:
    case DW_FORM_strx1:
    case DW_FORM_addrx1:
      value.number = in.Read<uint8_t>();
      return true;
    case DW_FORM_data2:
    case DW_FORM_ref2:
    case DW_FORM_strx2:
    case DW_FORM_addrx2:
      value.number = in.Read<uint16_t>();
      return true;
    case DW_FORM_strx3:
    case DW_FORM_addrx3:
      value.number = ReadThreeBytes(in);
      return true;
    case DW_FORM_data4:
    case DW_FORM_ref4:
    case DW_FORM_strx4:
    case DW_FORM_addrx4:
    case DW_FORM_ref_sup4:
      value.number = in.Read<uint32_t>();
      return true;
    case DW_FORM_data8:
    case DW_FORM_ref8:
    case DW_FORM_ref_sig8:
    case DW_FORM_ref_sup8:
      value.number = in.Read<uint64_t>();
      return true;
    case DW_FORM_strp:
    case DW_FORM_line_strp:
    case DW_FORM_strp_sup:
    case DW_FORM_sec_offset:
    case DW_FORM_GNU_ref_alt:
    case DW_FORM_GNU_strp_alt:
      value.number = in.ReadSized(format.offset_bytes);
      return true;
    case DW_FORM_ref_addr:
      value.number = in.ReadSized(format.version <= 2 ? format.address_bytes
                                                      : format.offset_bytes);
      return true;
    case DW_FORM_udata:
    case DW_FORM_ref_udata:
    case DW_FORM_strx:
    case DW_FORM_addrx:
    case DW_FORM_rnglistx:
    case DW_FORM_GNU_addr_index:
    case DW_FORM_GNU_str_index:
      value.number = in.ReadUleb128();
      return true;
    case DW_FORM_sdata:
      value.number = static_cast<uint64_t>(in.ReadSleb128());
      return true;
    case DW_FORM_implicit_const:
      value.number = static_cast<uint64_t>(spec.implicit_value);
      return true;
    case DW_FORM_string:
      value.text = in.ReadCString();
      return true;
    case DW_FORM_flag_present:
      value.number = 1;
      return true;
    case DW_FORM_indirect:
      return ReadIndirectForm(spec, format, in, value);
    default:
      return SkipForm(spec.form, format, in);
  }
}

std::string_view DwarfFile::IndexedString(const DwarfUnit& unit,
                                          uint64_t index) const {
  ByteCursor in(sections_.Get(DebugSection::kStrOffsets));
  if (index > in.remaining()) return {};
  in.Skip(unit.str_offsets_base);
  in.Skip(index * unit.format.offset_bytes);
  const uint64_t offset = in.ReadSized(unit.format.offset_bytes);
  return in.ok() ? sections_.Text(DebugSection::kStr, offset)
                 : std::string_view();
}

std::string_view DwarfFile::String(const DwarfUnit& unit,
                                   const FormValue& value) const {
  switch (value.form) {
    case DW_FORM_string:
      return value.text;
    case DW_FORM_strp:
      return sections_.Text(DebugSection::kStr, value.number);
    case DW_FORM_line_strp:
      return sections_.Text(DebugSection::kLineStr, value.number);
    case DW_FORM_strx:
    case DW_FORM_strx1:
    case DW_FORM_strx2:
    case DW_FORM_strx3:
    case DW_FORM_strx4:
    case DW_FORM_GNU_str_index:
      return IndexedString(unit, value.number);
    case DW_FORM_strp_sup:
    case DW_FORM_GNU_strp_alt:
      return alternate_ == nullptr
                 ? std::string_view()
                 : alternate_->sections_.Text(DebugSection::kStr, value.number);
    default:
      return {};
  }
}

std::optional<uint64_t> DwarfFile::IndexedAddress(const DwarfUnit& unit,
                                                  uint64_t index) const {
  const DwarfFile& file = skeleton_file_ == nullptr ? *this : *skeleton_file_;
  ByteCursor in(file.sections_.Get(DebugSection::kAddr));
  if (index > in.remaining()) return std::nullopt;
  in.Skip(unit.addr_base);
  in.Skip(index * unit.format.address_bytes);
  const uint64_t address = in.ReadSized(unit.format.address_bytes);
  return in.ok() ? std::optional(address) : std::nullopt;
}

std::optional<uint64_t> DwarfFile::AddressOf(const DwarfUnit& unit,
                                             const FormValue& value) const {
  switch (value.form) {
    case DW_FORM_addr:
      return value.number;
    case DW_FORM_addrx:
    case DW_FORM_addrx1:
    case DW_FORM_addrx2:
    case DW_FORM_addrx3:
    case DW_FORM_addrx4:
    case DW_FORM_GNU_addr_index:
      return IndexedAddress(unit, value.number);
    default:
      return std::nullopt;
  }
}

std::optional<DwarfFile::Reference> DwarfFile::Refer(
    const DwarfUnit& unit, const FormValue& value) const {
  switch (value.form) {
    case DW_FORM_ref1:
    case DW_FORM_ref2:
    case DW_FORM_ref4:
    case DW_FORM_ref8:
    case DW_FORM_ref_udata:
      return Reference{this, unit.offset + value.number};
    case DW_FORM_ref_addr:
      return Reference{this, value.number};
    case DW_FORM_GNU_ref_alt:
    case DW_FORM_ref_sup4:
    case DW_FORM_ref_sup8:
      if (alternate_ == nullptr) return std::nullopt;
      return Reference{alternate_.get(), value.number};
    default:
      return std::nullopt;
  }
}

// .debug_ranges: DWARF 4, section 2.17.3. In a split unit it is the
// skeleton's.
bool DwarfFile::ReadOldRanges(const DwarfUnit& unit, uint64_t offset,
                              std::vector<AddressRange>& ranges) const {
  const DwarfFile& file = skeleton_file_ == nullptr ? *this : *skeleton_file_;
  ByteCursor in(file.sections_.Get(DebugSection::kRanges));
  // The skeleton's own ranges do not count from its base.
  if (skeleton_file_ != nullptr) in.Skip(unit.ranges_base);
  in.Skip(offset);
  const size_t size = unit.format.address_bytes;
  const uint64_t select_base =
      size == 4 ? 0xffffffff : std::numeric_limits<uint64_t>::max();
  uint64_t base = unit.low_pc;
  for (size_t n = 0; n < kMaxRanges; ++n) {
    const uint64_t start = in.ReadSized(size);
    const uint64_t end = in.ReadSized(size);
    if (!in.ok()) return false;
    if (start == 0 && end == 0) return true;
    if (start == select_base) {
      base = end;
    } else if (start < end) {
      ranges.push_back({base + start, base + end});
    }
  }
  return false;
}

// .debug_rnglists: DWARF 5, section 2.17.3.
bool DwarfFile::ReadRangeList(const DwarfUnit& unit, uint64_t offset,
                              std::vector<AddressRange>& ranges) const {
  ByteCursor in(sections_.Get(DebugSection::kRnglists));
  in.Seek(offset);
  const size_t size = unit.format.address_bytes;
  uint64_t base = unit.low_pc;
  const auto indexed = [&] {
    const auto address = IndexedAddress(unit, in.ReadUleb128());
    if (!address) in.Skip(std::numeric_limits<uint64_t>::max());
    return address.value_or(0);
  };
  for (size_t n = 0; n < kMaxRanges; ++n) {
    uint64_t start = 0;
    uint64_t end = 0;
    switch (in.Read<uint8_t>()) {
      case DW_RLE_end_of_list:
        return in.ok();
      case DW_RLE_base_addressx:
        base = indexed();
        break;
      case DW_RLE_base_address:
        base = in.ReadSized(size);
        break;
      case DW_RLE_startx_endx:
        start = indexed();
        end = indexed();
        break;
      case DW_RLE_startx_length:
        start = indexed();
        end = start + in.ReadUleb128();
        break;
      case DW_RLE_offset_pair:
        start = base + in.ReadUleb128();
        end = base + in.ReadUleb128();
        break;
      case DW_RLE_start_end:
        start = in.ReadSized(size);
        end = in.ReadSized(size);
        break;
      case DW_RLE_start_length:
        start = in.ReadSized(size);
        end = start + in.ReadUleb128();
        break;
      default:
        return false;
    }
    if (!in.ok()) return false;
    if (start < end) ranges.push_back({start, end});
  }
  return false;
}

std::optional<uint64_t> DwarfFile::RangeListOffset(
    const DwarfUnit& unit, const FormValue& value) const {
  if (value.form != DW_FORM_rnglistx) return value.number;
  ByteCursor in(sections_.Get(DebugSection::kRnglists));
  if (value.number > in.remaining()) return std::nullopt;
  in.Skip(unit.rnglists_base);
  in.Skip(value.number * unit.format.offset_bytes);
  const uint64_t offset = in.ReadSized(unit.format.offset_bytes);
  if (!in.ok()) return std::nullopt;
  return unit.rnglists_base + offset;
}

bool DwarfFile::ReadRanges(const DwarfUnit& unit, const FormValue& value,
                           std::vector<AddressRange>& ranges) const {
  if (unit.format.version < 5) return ReadOldRanges(unit, value.number, ranges);
  const auto offset = RangeListOffset(unit, value);
  return offset && ReadRangeList(unit, *offset, ranges);
}

void DwarfFile::ReadUnitCode(const DwarfUnit& unit,
                             std::vector<AddressRange>& ranges) const {
  if (unit.ranges.is_set()) {
    ReadRanges(unit, unit.ranges, ranges);
    return;
  }
  if (!unit.high_pc.is_set()) return;
  const auto high = AddressOf(unit, unit.high_pc);
  const uint64_t end = high ? *high : unit.low_pc + unit.high_pc.number;
  if (end > unit.low_pc) ranges.push_back({unit.low_pc, end});
}

}  // namespace ksym
