// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "bpf/unwind_abi.h"
#include "ksym/unwind/unwind_row.h"

namespace profd {

// A part of a file's table as it lies in a shard: an index, then rows; see
// bpf/unwind_abi.h.
struct UnwindPiece {
  uint64_t begin = 0;  // of the code, as the rows count; multiples of a block
  uint64_t end = 0;
  std::vector<uint64_t> index;            // as slots
  std::span<const ksym::UnwindRow> rows;  // of the table; a slot each

  size_t slots() const { return index.size() + rows.size(); }
};

// Cuts a table into pieces of at most `max_slots` slots, one after the other
// from `begin`, a multiple of a block, to `code_bytes`. The rows are sorted and
// begin at 0. A block of code with more rows than a piece could hold is left
// out. The pieces borrow the rows. Pure; O(rows + blocks).
std::vector<UnwindPiece> CutIntoPieces(std::span<const ksym::UnwindRow> rows,
                                       uint64_t code_bytes,
                                       size_t max_slots = UNWIND_SHARD_SLOTS,
                                       uint64_t begin = 0);

}  // namespace profd
