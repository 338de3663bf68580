// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "ksym/runtime/hotspot/numbers.h"

namespace ksym {

// The line of the bytecode at that index, by the table behind a method's
// bytecodes: that of the entry with the largest index up to it. Nothing: there
// is none, or the table cannot be. Entries need not be in order, so all are
// read. A byte has the steps of both, or 255 stands before two signed numbers;
// 0 ends the table. (CompressedLineNumberReadStream of OpenJDK.)
std::optional<uint32_t> HotspotLineAt(std::span<const std::byte> table,
                                      HotspotNumbers form, uint32_t bytecode);

// The bytes of the table that begins there, with its end; 0: it has none.
size_t HotspotLineTableBytes(std::span<const std::byte> table,
                             HotspotNumbers form);

}  // namespace ksym
