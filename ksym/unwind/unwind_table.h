// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "ksym/base/address.h"
#include "ksym/base/result.h"
#include "ksym/elf/byte_source.h"
#include "ksym/elf/elf_image.h"
#include "ksym/unwind/call_frame_section.h"
#include "ksym/unwind/unwind_row.h"

namespace ksym {

// What became of a file's call-frame information.
struct UnwindTableCounts {
  // Functions (or parts of them) that the file describes.
  uint32_t fdes = 0;
  // Those whose description is malformed, or that are of code which is in no
  // executable segment. What they describe is kNoInfo.
  uint32_t bad_fdes = 0;
  // Those that begin in code which another one describes; see below.
  uint32_t overlapping_fdes = 0;
  // Rows of the kind kUnsupported.
  uint32_t unsupported_rows = 0;

  friend bool operator==(const UnwindTableCounts&,
                         const UnwindTableCounts&) = default;
};

// Where a file's code is.
struct CodeExtent {
  // The lowest address of an executable PT_LOAD segment, which rows count from.
  ElfAddress base;
  // How far the executable segments reach from there, in bytes; below 4 GiB.
  uint64_t size = 0;
};

// The rows of one file.
struct UnwindTable : CodeExtent {
  // Sorted by pc, each pc once, none equal to the one before but for its pc.
  // Never empty: the first row is at pc 0. Code that nothing describes has
  // kNoInfo rows, but for the padding in front of a function, at most 15 bytes
  // up to a multiple of 16, which goes with what is before it.
  std::vector<UnwindRow> rows;
  UnwindTableCounts counts;
  // Which of the bad FDEs was found first, and what is wrong with it.
  std::string first_problem;
};

// 32 MiB of rows: the largest programs known have less than half.
inline constexpr size_t kMaxUnwindRows = size_t{4} << 20;

// What one section says, and nothing else: equal sections of equal extents have
// equal tables. No rows if the section has no FDE. kLimit: kMaxUnwindRows,
// kMaxFrameEntries, kMaxCommonEntries.
Result<UnwindTable> BuildSectionTable(const CallFrameSection& section,
                                      const CodeExtent& code);

// BuildSectionTable, or what gives the same and knows it already.
using SectionTables = std::function<Result<UnwindTable>(const CallFrameSection&,
                                                        const CodeExtent&)>;

// The table of an x86-64 file: from .eh_frame or, where there is none, from
// .debug_frame, unless it is Go's; a file with neither has one row, kNoInfo.
// Linkage stubs, .init and returns from signal handlers that have none are
// known by their code (ksym/unwind/x86_64/known_code.h). An entry that is
// malformed costs its own range only. Where two describe the same code, the one
// that begins earlier ends where the other begins; of two with the same begin
// the first in the file counts.
//
// kUnsupported: another machine, a 32-bit file, or code that is 4 GiB apart.
// kNotFound: no executable segment. kCorrupt: the section cannot be read.
// kLimit: see above. Cost: 0.2 to 0.6 µs per FDE; and while it runs, the
// section's bytes, 40 bytes per FDE and twice the rows.
Result<UnwindTable> BuildUnwindTable(
    const ByteSource& source, const ElfImage& image,
    const SectionTables& table_of = BuildSectionTable);

// The row that holds at `pc`, which counts from the table's base, or null when
// it is past the table's end. O(log rows).
const UnwindRow* FindUnwindRow(const UnwindTable& table, uint64_t pc);

}  // namespace ksym
