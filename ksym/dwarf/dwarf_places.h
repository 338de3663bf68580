// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "ksym/base/address.h"
#include "ksym/base/function_batch.h"
#include "ksym/base/result.h"
#include "ksym/dwarf/function_reader.h"
#include "ksym/elf/byte_source.h"
#include "ksym/elf/elf_image.h"

namespace ksym {

// A function at an address, or code that was inlined into one, and where in
// its source that is; for callers of inlined code, the call.
struct DwarfPlace {
  std::string_view function;         // empty: not known
  const SourceFile* file = nullptr;  // null: not known
  uint32_t line = 0;
  uint32_t column = 0;
};

// Finds addresses in the DWARF of one ELF file, as LLVM's symbolizer does: the
// unit that says it has the address, in it the function that begins last and
// has it, the innermost inlined call there, and the row of the line table. As
// there, a function without a linkage name has no scopes in front. For
// lookups here and there: opening it reads the sections and looks at each
// unit's first entry; a unit is read when an address in it is asked for, and
// kept. For all of a program's addresses a GSYM file is faster. Not
// thread-safe.
class DwarfPlaces {
 public:
  // kNotFound: the file has no DWARF.
  static Result<DwarfPlaces> Open(const ByteSource& source,
                                  const ElfImage& image,
                                  const DwarfFileFinder& finder);
  DwarfPlaces(DwarfPlaces&&) noexcept;
  DwarfPlaces& operator=(DwarfPlaces&&) noexcept;
  ~DwarfPlaces();

  // Replaces `places` by those at the address, innermost first; the last is
  // the function's. One without a function: there is only a line. None:
  // nothing is known. What they point to lives as long as this.
  void Find(ElfAddress address, std::vector<DwarfPlace>& places);

  // What could not be read so far.
  const DwarfLosses& losses() const { return losses_; }
  // Grows with the units that are read.
  size_t memory_bytes() const { return memory_bytes_; }

 private:
  class Unit;
  // Code of one unit. Sorted and disjoint.
  struct UnitCode {
    AddressRange range;
    uint32_t unit = 0;
  };

  explicit DwarfPlaces(DwarfFunctionReader reader);
  void IndexUnits();
  Unit& UnitAt(size_t index);

  DwarfFunctionReader reader_;
  std::vector<UnitCode> code_;
  std::vector<std::unique_ptr<Unit>> units_;  // null: not read
  DwarfLosses losses_;
  size_t memory_bytes_ = 0;
};

}  // namespace ksym
