// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "ksym/elf/byte_source.h"
#include "ksym/elf/elf_image.h"

namespace ksym {

// .symtab, else .dynsym, if it is in the file; or null.
const ElfSection* FindSymbolSection(const ElfImage& image);

// The symbols of one program's functions, with their names, as llvm-symbolizer
// ranks them: of those at one address the largest, and of these the last one in
// the table, which has local symbols first. Labels are left out, as a label is
// a jump target more often than a function. Movable.
class FunctionSymbols {
 public:
  struct Symbol {
    uint64_t start = 0;
    uint64_t end = 0;
    bool is_sized = false;
    std::string_view name;
  };

  // Takes the symbols of a file in place of those before; none where they
  // cannot be read. Reads the string table into memory.
  void Load(const ByteSource& source, const ElfImage& image);
  // Adds the stubs of a program's linkage tables, "f@plt"; x86-64 only.
  void AddStubs(const ByteSource& source, const ElfImage& image);

  // By start, then in the table's order.
  const std::vector<Symbol>& symbols() const { return symbols_; }
  bool empty() const { return symbols_.empty(); }

  // The name of the symbol that starts there, else `otherwise`. O(log symbols).
  std::string_view NameAt(uint64_t start, std::string_view otherwise) const;

  // Where names change: each start, and each end in front of a gap. Rising.
  std::vector<uint64_t> Edges() const;

 private:
  std::vector<std::byte> names_;
  std::deque<std::string> stub_names_;
  std::vector<Symbol> symbols_;
};

}  // namespace ksym
