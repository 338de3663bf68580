// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "ksym/base/result.h"
#include "ksym/elf/byte_source.h"
#include "ksym/elf/elf_image.h"
#include "ksym/elf/symbol_table.h"

namespace ksym {

// Appends the stubs of the procedure linkage tables, named for the .dynsym
// symbol they jump to. x86-64 only: each stub's indirect jump is decoded and
// its slot looked up among the relocations, which holds for .plt, .plt.sec
// and .plt.got whatever their order. A file without any adds nothing. Fails
// when a relocation cannot be read; what was found before it is appended then.
// Transient memory: 24 bytes per stub and the largest of these tables, of
// which one beyond 4 MiB is left out.
Status AddPltStubs(const ByteSource& source, const ElfImage& image,
                   std::vector<SymbolCandidate>& symbols);

}  // namespace ksym
