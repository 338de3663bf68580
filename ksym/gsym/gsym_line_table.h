#pragma once

#include <cstdint>
#include <limits>

#include "ksym/base/byte_cursor.h"
#include "ksym/base/function_batch.h"
#include "ksym/gsym/gsym_format.h"

namespace ksym {

// Runs a function's line program: each row goes to `visit`, which returns
// false to stop. `start` is the function's. File 1 and the function's start
// are where it begins. False when the program is malformed or cut off.
template <typename Visit>
bool RunGsymLineTable(ByteCursor in, uint64_t start, Visit&& visit) {
  const int64_t min_delta = in.ReadSleb128();
  const int64_t max_delta = in.ReadSleb128();
  LineRow row = {.address = start, .file = 1};
  row.line = static_cast<uint32_t>(in.ReadUleb128());
  const uint64_t range =
      static_cast<uint64_t>(max_delta) - static_cast<uint64_t>(min_delta) + 1;
  if (!in.ok() || max_delta < min_delta || range == 0) return false;
  // adjusted / range as a product: exact for all opcodes, because both are
  // below 256; a wider range has no quotient but 0.
  const auto inverse =
      range > 255 ? 0u : 65536u / static_cast<uint32_t>(range) + 1;
  const auto line_base = static_cast<uint32_t>(min_delta);
  for (;;) {
    const auto op = in.Read<uint8_t>();
    if (!in.ok()) return false;
    if (op >= kGsymFirstSpecialOp) {
      const uint32_t adjusted = op - uint32_t{kGsymFirstSpecialOp};
      const uint32_t advance = adjusted * inverse >> 16;
      row.line += line_base + adjusted - advance * static_cast<uint32_t>(range);
      row.address += advance;
      if (!visit(row)) return true;
      continue;
    }
    switch (static_cast<GsymLineOp>(op)) {
      case GsymLineOp::kEnd:
        return true;
      case GsymLineOp::kSetFile:
        row.file = static_cast<uint32_t>(in.ReadUleb128());
        break;
      case GsymLineOp::kAdvanceAddress:
        row.address += in.ReadUleb128();
        if (in.ok() && !visit(row)) return true;
        break;
      case GsymLineOp::kAdvanceLine:
        row.line += static_cast<uint32_t>(in.ReadSleb128());
        break;
    }
  }
}

}  // namespace ksym
