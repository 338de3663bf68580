// SPDX-License-Identifier: Apache-2.0
#include "ksym/dwarf/form_value.h"

#include <dwarf.h>

#include <limits>

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
  // One more step of the same would let a file nest calls as deep as it is
  // long.
  if (real == DW_FORM_indirect || real == DW_FORM_implicit_const ||
      real > std::numeric_limits<uint16_t>::max()) {
    return false;
  }
  const AttributeSpec direct = {spec.name, static_cast<uint16_t>(real)};
  return ReadForm(direct, format, in, value);
}

}  // namespace

bool ReadForm(const AttributeSpec& spec, const UnitFormat& format,
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
      // DWARF 2 has it as wide as an address (section 7.5.4 there).
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

}  // namespace ksym
