// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "ksym/runtime/cpython/layout.h"

namespace ksym {

// A code object's table of lines.
struct CpythonLines {
  CpythonLayout::LineTable form = CpythonLayout::LineTable::kLocations;
  std::span<const std::byte> table;
  uint32_t first_line = 0;  // of the function
};

// The source line of an instruction (Objects/lnotab_notes.txt in the sources up
// to 3.10, Objects/locations.md later). `index`: of the instruction, in units
// of two bytes. Nothing where the table says that there is no line, ends
// before, or is malformed; the oldest form has no end and is never malformed.
// Cost: linear in the table.
std::optional<uint32_t> CpythonLineAt(const CpythonLines& lines,
                                      uint32_t index);

}  // namespace ksym
