// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

#include "ksym/base/byte_cursor.h"
#include "ksym/dwarf/abbreviations.h"

namespace ksym {

// A value as it is stored; what it means depends on form and unit.
struct FormValue {
  uint16_t form = 0;           // 0: the attribute is not there
  uint64_t number = 0;         // also of references, indices and offsets
  std::string_view text = {};  // of DW_FORM_string

  bool is_set() const { return form != 0; }
};

// Reads one value. False for a form that is not known.
bool ReadForm(const AttributeSpec& spec, const UnitFormat& format,
              ByteCursor& in, FormValue& value);

}  // namespace ksym
