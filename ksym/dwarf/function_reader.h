// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ksym/base/function_batch.h"
#include "ksym/base/result.h"
#include "ksym/dwarf/dwarf_file.h"
#include "ksym/dwarf/unit_reader.h"
#include "ksym/elf/byte_source.h"
#include "ksym/elf/code_ranges.h"
#include "ksym/elf/elf_image.h"

namespace ksym {

// Where the other files are that DWARF refers to. `open` empty: look nowhere.
struct DwarfFileFinder {
  std::string file_path;  // of the file with the DWARF
  // More paths that may have a package beside them ("PATH.dwp"): those of the
  // program itself, when its DWARF is in a separate debug file.
  std::string program_path;
  std::function<Result<ByteSource>(const std::string& path)> open;
  // In any of the files; unpacked. kLimit.
  uint64_t max_section_bytes = kMaxDebugSectionBytes;
};

// The functions of one unit.
struct UnitFunctions {
  FunctionBatch batch;
  // Code that has lines, which are in the batch, and no function: what an
  // assembler made, and padding. Without names.
  std::vector<FunctionInfo> other_code;
  DwarfLosses losses;
  // Has the names of a unit whose entries are in a file of its own.
  std::shared_ptr<const DwarfFile> split_file;
};

// Functions, their lines and inlined calls from the DWARF of one ELF file, of
// versions 2 to 5: units of all kinds, entries that refer to other units or to
// the file that dwz made for several, split units in .dwo files or a .dwp
// package, compressed sections. Everything is checked; nothing is mapped.
// Immutable once opened: any number of threads may read units.
class DwarfFunctionReader {
 public:
  // kNotFound: the file has no .debug_info. Reads the sections into memory,
  // and a package whole; the names in batches are views of it.
  static Result<DwarfFunctionReader> Open(const ByteSource& source,
                                          const ElfImage& image,
                                          const DwarfFileFinder& finder = {});

  size_t unit_count() const { return file_->units().size(); }
  // Losses while opening; those of units come with their functions.
  const DwarfLosses& losses() const { return losses_; }

  // Appends the code that a unit says it has; it need not say.
  void ReadUnitCode(size_t index, std::vector<AddressRange>& ranges) const {
    file_->ReadUnitCode(file_->units()[index], ranges);
  }
  // Whether a unit that does not say so may have code; one that others share,
  // or without lines, has none.
  bool MayHaveCode(size_t index) const;
  // Whether a unit could say that it has several pieces of code; DWARF 2 itself
  // has no list of them.
  bool CanListCode(size_t index) const;
  // Whether a unit has no code for sure, whatever it says: nothing in it could
  // say where a function is, and its line table has no rows.
  bool HasNoCode(size_t index) const;
  // Bytes of a unit's entries: what reading it costs.
  uint64_t EntryBytes(size_t index) const {
    const DwarfUnit& unit = file_->units()[index];
    return unit.end - unit.offset;
  }
  // Bytes of the sections that are held.
  size_t memory_bytes() const { return file_->sections().memory_bytes(); }

  // Replaces `out` by the functions of a unit; `index` is below unit_count().
  // A unit without code gives none. Cost: one pass over the unit's entries,
  // and its line table if there is a function. Views in `out` live as long as
  // this and `out` do.
  void ReadUnit(size_t index, const DwarfReadOptions& options,
                UnitFunctions& out) const;

 private:
  DwarfFunctionReader(CodeRanges code, const DwarfFileFinder& finder)
      : code_(std::move(code)), finder_(finder) {}

  std::unique_ptr<DwarfFile> OpenAlternate(const ByteSource& source,
                                           const ElfImage& image);
  void OpenPackage();
  Result<std::shared_ptr<const DwarfFile>> OpenSplit(
      const DwarfUnit& skeleton) const;
  void ReadEntriesOf(const DwarfFile& file, const DwarfUnit& unit,
                     const DwarfReadOptions& options, UnitFunctions& out) const;

  std::unique_ptr<DwarfFile> file_;
  CodeRanges code_;
  DwarfFileFinder finder_;
  DwarfLosses losses_;
  // Its bytes; units in it are completed by their skeletons' one at a time.
  std::shared_ptr<DwarfFile> package_;
};

}  // namespace ksym
