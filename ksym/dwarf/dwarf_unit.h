// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "ksym/dwarf/abbreviations.h"
#include "ksym/dwarf/form_value.h"

namespace ksym {

// A unit's header and what its first entry says: DWARF 5, sections 7.5.1 and
// 3.1. Offsets are in .debug_info.
struct DwarfUnit {
  uint64_t offset = 0;
  uint64_t first_entry = 0;
  uint64_t end = 0;
  UnitFormat format;
  uint8_t type = 0;  // DW_UT_*
  const AbbreviationTable* abbreviations = nullptr;
  uint16_t tag = 0;       // of the first entry
  uint16_t language = 0;  // DW_LANG_*; 0: not said

  // Where the unit's parts of other sections begin.
  uint64_t str_offsets_base = 0;
  uint64_t addr_base = 0;
  uint64_t ranges_base = 0;  // DWARF 4 split units only
  uint64_t rnglists_base = 0;
  uint64_t low_pc = 0;
  FormValue line_offset;  // DW_AT_stmt_list
  FormValue high_pc;
  FormValue ranges;
  std::string_view comp_dir;
  // The name of that file, where a unit's entries are in another one.
  std::string_view dwo_name;
  std::optional<uint64_t> dwo_id;

  bool is_skeleton() const { return !dwo_name.empty(); }
};

}  // namespace ksym
