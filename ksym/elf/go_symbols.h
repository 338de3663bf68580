// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "ksym/base/result.h"
#include "ksym/elf/byte_source.h"
#include "ksym/elf/elf_image.h"
#include "ksym/elf/symbol_table.h"

namespace ksym {

// The functions of a Go program, and the part of its file where their names
// are: NUL-terminated, at the offsets that the candidates give.
struct GoFunctions {
  std::vector<SymbolCandidate> candidates;  // of NameTable::kSymtab
  uint64_t names_offset = 0;
  uint64_t names_size = 0;
};

// Reads the table that a Go program needs at run time, to walk its own stacks,
// and that strip(1) and "go build -ldflags=-s" therefore leave: the section
// .gopclntab, or .data.rel.ro.gopclntab. Little-endian, as "Go 1.2 Runtime
// Symbol Information" by its authors and runtime/symtab.go have it:
//   magic 0xfffffffb (Go 1.2), ...fa (1.16), ...f0 (1.18) or ...f1 (1.20);
//   0, 0, instruction quantum, pointer size
//   words of pointer size: the number of functions, then from 1.16 on the
//   number of files, from 1.18 on the start of the text, then from 1.16 on
//   the places of names, units, files, line tables and functions
//   per function: its start, the place of its record; then the last one's end
//   record: its start again, the place of its name (32 bits), ...
// Until 1.16 starts are addresses, and pointer-sized; later they are distances
// from the start of the text, and all of this has 32 bits.
//
// kNotFound: no such section. kCorrupt: it contradicts itself or the file's
// other headers; starts must rise and be in an executable section, and each
// record must repeat its function's. kUnsupported: no magic number known here,
// or the start of the text is left to the dynamic linker. kLimit: more than
// kMaxSymbols functions. Cost: reads list and records once, in blocks.
Result<GoFunctions> ReadGoFunctions(const ByteSource& source,
                                    const ElfImage& image);

}  // namespace ksym
