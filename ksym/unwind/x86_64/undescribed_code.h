// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "ksym/elf/byte_source.h"
#include "ksym/elf/elf_image.h"
#include "ksym/unwind/row_patch.h"
#include "ksym/unwind/unwind_table.h"
#include "ksym/unwind/x86_64/code_scan.h"

namespace ksym {

// Gaps that are smaller have no function.
inline constexpr uint64_t kMinGapBytes = 16;
// Symbols are read where gaps have as much together; less is start-up code.
inline constexpr uint64_t kMinNamedGapBytes = 256;
// Symbols of one table that are looked at, 24 bytes each.
inline constexpr uint64_t kMaxScannedSymbols = uint64_t{1} << 20;

// What there is to scan in `gaps`, sorted parts of .text, and where the file's
// symbols say that functions are. Borrows the file and the table. No gaps in a
// file without .text.
CodeToScan FindCodeToScan(const ByteSource& source, const ElfImage& image,
                          const UnwindTable& table,
                          std::span<const CodeRange> gaps);

// Rows for code in `gaps`, sorted parts of .text that have none, from what its
// instructions do to the stack (ksym/unwind/x86_64/code_scan.h). Functions are
// known by the file's symbols; where the program begins is the outermost frame.
// What is not understood is left out. They do not overlap, and are in no order.
// Cost: 30 ns per byte of assembly in the gaps, 200 ns of other code, as much
// as ScanCode() allows; of data there little is read.
std::vector<RowPatch> FindUndescribedRows(const ByteSource& source,
                                          const ElfImage& image,
                                          const UnwindTable& table,
                                          std::span<const CodeRange> gaps);

}  // namespace ksym
