// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace ksym {

// The source line of an instruction, by the location table of a code object of
// CPython 3.11 or later (PEP 626, Objects/locations.md in its sources).
// `index`: of the instruction, in units of two bytes. Nothing where the table
// says that there is no line, ends before, or is malformed. Cost: linear in the
// table.
std::optional<uint32_t> CpythonLineAt(std::span<const std::byte> table,
                                      uint32_t first_line, uint32_t index);

}  // namespace ksym
