// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "ksym/unwind/unwind_row.h"

namespace ksym {

// A part of the code, counted from the table's base; [start, end).
struct CodeRange {
  uint64_t start = 0;
  uint64_t end = 0;
};

// Such a part that gets a row.
struct RowPatch {
  uint64_t start = 0;
  uint64_t end = 0;
  UnwindRow row;
};

}  // namespace ksym
