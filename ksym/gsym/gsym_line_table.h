// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <limits>

#include "ksym/base/byte_cursor.h"
#include "ksym/base/function_batch.h"
#include "ksym/gsym/gsym_format.h"

namespace ksym {

// How a line program's one-byte steps are divided between address and line.
struct GsymLineSteps {
  uint32_t line_base = 0;
  uint32_t range = 1;
  uint32_t inverse = 0;  // adjusted / range as a product
};

// Reads what a program begins with. `row` becomes the row from which it goes
// on: file 1, at the function's start. False when it is malformed or cut off.
inline bool ReadGsymLineHeader(ByteCursor& in, uint64_t start,
                               GsymLineSteps& steps, LineRow& row) {
  const int64_t min_delta = in.ReadSleb128();
  const int64_t max_delta = in.ReadSleb128();
  row = {.address = start, .file = 1};
  row.line = static_cast<uint32_t>(in.ReadUleb128());
  const uint64_t range =
      static_cast<uint64_t>(max_delta) - static_cast<uint64_t>(min_delta) + 1;
  if (!in.ok() || max_delta < min_delta || range == 0) return false;
  steps.line_base = static_cast<uint32_t>(min_delta);
  steps.range = static_cast<uint32_t>(range);
  // Exact for all opcodes, because both are below 256; a wider range has no
  // quotient but 0.
  steps.inverse = range > 255 ? 0u : 65536u / steps.range + 1;
  return true;
}

// Goes on behind the row `row`, whose opcode ends at `in`: each further row
// goes to `visit` with the cursor behind it, and `visit` returns false to stop.
// False when the program is malformed or cut off.
template <typename Visit>
bool RunGsymLineRows(ByteCursor in, const GsymLineSteps& steps, LineRow row,
                     Visit&& visit) {
  for (;;) {
    const auto op = in.Read<uint8_t>();
    if (!in.ok()) return false;
    if (op >= kGsymFirstSpecialOp) {
      const uint32_t adjusted = op - uint32_t{kGsymFirstSpecialOp};
      const uint32_t advance = adjusted * steps.inverse >> 16;
      row.line += steps.line_base + adjusted - advance * steps.range;
      row.address += advance;
      if (!visit(row, in)) return true;
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
        if (in.ok() && !visit(row, in)) return true;
        break;
      case GsymLineOp::kAdvanceLine:
        row.line += static_cast<uint32_t>(in.ReadSleb128());
        break;
    }
  }
}

// Runs a function's line program: each row goes to `visit`, which returns
// false to stop. `start` is the function's. False when the program is malformed
// or cut off.
template <typename Visit>
bool RunGsymLineTable(ByteCursor in, uint64_t start, Visit&& visit) {
  GsymLineSteps steps;
  LineRow row;
  if (!ReadGsymLineHeader(in, start, steps, row)) return false;
  return RunGsymLineRows(
      in, steps, row,
      [&](const LineRow& next, const ByteCursor&) { return visit(next); });
}

}  // namespace ksym
