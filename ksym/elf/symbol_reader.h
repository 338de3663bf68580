// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "ksym/base/result.h"
#include "ksym/elf/byte_source.h"
#include "ksym/elf/code_ranges.h"
#include "ksym/elf/elf_image.h"
#include "ksym/elf/section_bytes.h"
#include "ksym/elf/symbol_table.h"

namespace ksym {

// Symbols of one file that are looked at; more is kLimit. The largest known
// binaries (browsers with debug data) have about two million.
inline constexpr uint64_t kMaxSymbols = uint64_t{4} << 20;

// How many symbols a file of that size has, by its section headers; at most
// kMaxSymbols.
size_t CountSymbolsAtMost(const ElfImage& image, uint64_t file_size);

// Collects the function symbols of one file. Borrows its arguments.
class SymbolReader {
 public:
  SymbolReader(const ByteSource& source, const ElfImage& image);

  // Appends the symbols of a SHT_SYMTAB or SHT_DYNSYM section: type FUNC or
  // GNU_IFUNC, or NOTYPE, defined in an executable section of the image.
  // NOTYPE without a size is a label, which only a full table has close enough
  // together to say where it ends: .dynsym's are left out. So are mapping
  // symbols ("$x"), assembler locals (".L") and marks of compilers (labels
  // that begin with a dot).
  // Read in blocks of 64 KiB; transient memory is that and 4 bytes per local
  // symbol. `strings` are the names, and `table` says where that is.
  Status ReadSymbols(const ElfSection& section, const SectionBytes& strings,
                     NameTable table);

  std::vector<SymbolCandidate> Take() && { return std::move(symbols_); }

 private:
  struct RawSymbol;

  void AddSymbol(const RawSymbol& symbol, NameTable table);
  void DropIgnoredLocals(const SectionBytes& strings, size_t first);

  const ByteSource& source_;
  const ElfImage& image_;
  CodeRanges code_;
  bool is_relocatable_;
  std::vector<SymbolCandidate> symbols_;
};

}  // namespace ksym
