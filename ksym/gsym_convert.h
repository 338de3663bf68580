// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ksym/base/result.h"
#include "ksym/breakpad/breakpad_file.h"
#include "ksym/dwarf/function_reader.h"
#include "ksym/dwarf/unit_index.h"
#include "ksym/elf/byte_source.h"
#include "ksym/elf/debug_file.h"
#include "ksym/function_symbols.h"
#include "ksym/gsym/gsym_writer.h"

namespace ksym {

// Runs read(i, out) for each unit, on any thread, and add(out) on the caller's,
// in the order of i, which makes the result independent of the number of
// threads. libksym starts none itself.
struct UnitWork {
  size_t unit_count = 0;
  std::function<void(size_t index, UnitFunctions& out)> read;
  std::function<void(const UnitFunctions& unit)> add;
};
using UnitRunner = std::function<void(const UnitWork& work)>;
// One after the other, with the memory of one unit.
void RunUnitsInTurn(const UnitWork& work);

struct GsymConvertOptions {
  GsymWriterOptions file;
  DwarfReadOptions dwarf;
  UnitRunner runner = RunUnitsInTurn;
  // A larger section of debug data is kLimit; compressed ones count unpacked.
  uint64_t max_section_bytes = kMaxDebugSectionBytes;
};

// A GSYM file and what it was made of.
struct GsymConversion {
  std::vector<std::byte> bytes;
  size_t functions = 0;         // in the file
  size_t symbol_functions = 0;  // of those, known by their symbol only
  bool has_dwarf = false;
  // Why none of the debug data could be used that is there; else empty.
  std::string dwarf_error;
  DwarfLosses dwarf_losses;
  BreakpadLosses breakpad_losses;
  GsymWriter::Losses file_losses;

  // Puts the file together of what the writer has. Fails as the writer does.
  Status Finish(GsymWriter writer, std::string_view build_id);
};

// The functions of an ELF file from its DWARF, or its debug file's, and where
// there is none from its symbols, with lines if DWARF has those. A function's
// name is its symbol's, which tells the parts that a compiler split off
// ("f.cold", "f.__part.1") from the whole; without a symbol it is DWARF's. One
// piece of code with several symbols is several functions. A linkage stub is
// "f@plt".
class ElfFunctions {
 public:
  // Opens the file and what it refers to. kUnsupported, kCorrupt: not an ELF
  // file that can be read. One without DWARF has symbols only.
  static Result<ElfFunctions> Open(
      const ByteSource& source, const DebugFileFinder& finder,
      uint64_t max_section_bytes = kMaxDebugSectionBytes);

  const std::string& build_id() const { return build_id_; }
  bool has_dwarf() const { return dwarf_ != nullptr; }
  // Why not, or what is lost of it.
  const Status& dwarf_status() const { return dwarf_status_; }

  // Goes over the functions of all units, then over those that only have
  // symbols, in the same form. Views live as long as this.
  // `add` is called on this thread.
  void ForEachBatch(const DwarfReadOptions& options, const UnitRunner& runner,
                    const std::function<void(const FunctionBatch&)>& add);

  // The part of the functions that is all that matters for some addresses.
  struct Excerpt {
    std::vector<AddressRange> windows;  // rising, disjoint; not empty
    std::vector<uint32_t> units;        // that may have code there
    uint64_t entry_bytes = 0;           // of those units
  };
  // The part for windows of code that end behind an address each. Nothing:
  // only all of the functions will do. The first call looks at all units.
  std::optional<Excerpt> ExcerptOf(std::vector<AddressRange> windows);
  // From the last symbol in front of an address up to the address if it reaches
  // there, else the address alone.
  AddressRange WindowOf(uint64_t address) const;
  // The sum over all units.
  uint64_t entry_bytes() const;
  // As ForEachBatch(), in turn, but only pieces of functions that touch the
  // windows. They begin at the addresses at which they all begin, and up to the
  // ends of the windows their lines and inlined calls are the same.
  void ForEachBatchOf(const Excerpt& excerpt, const DwarfReadOptions& options,
                      const std::function<void(const FunctionBatch&)>& add);

  // The sum over all batches so far.
  const DwarfLosses& losses() const { return losses_; }
  size_t symbol_functions() const { return symbol_functions_; }

 private:
  // The open files, all borrowed.
  struct Program {
    const ByteSource& source;
    const ElfImage& image;
    const DebugFileFinder& finder;
    uint64_t max_section_bytes;
  };

  ElfFunctions() = default;
  Status LoadDwarf(const ByteSource& source, const ElfImage& image,
                   const DwarfFileFinder& finder);
  void AddDebugFile(const Program& program, bool is_stripped);
  void SetNames(FunctionBatch& batch) const;
  // Lines of code that has no function.
  struct OtherCode {
    AddressRange range;
    std::vector<LineRow> lines;     // files are indices into those here
    std::vector<SourceFile> files;  // [0] is none
  };
  void KeepOtherCode(const UnitFunctions& unit);
  // Where the files of one are in the batch that takes them.
  struct CodeFiles {
    const OtherCode* code = nullptr;
    uint32_t first_file = 0;
  };
  void AddOtherLines(FunctionInfo& function, FunctionBatch& batch,
                     CodeFiles& last) const;
  FunctionBatch SymbolsOutside(std::vector<AddressRange> covered,
                               std::span<const AddressRange> windows) const;
  void RunUnits(UnitWork work, const UnitRunner& runner,
                const DwarfReadOptions& options,
                const std::function<void(const FunctionBatch&)>& add);

  std::string build_id_;
  Status dwarf_status_;
  std::unique_ptr<DwarfFunctionReader> dwarf_;
  std::optional<UnitIndex> unit_index_;  // from the first excerpt on
  FunctionSymbols symbols_;
  std::vector<uint64_t> edges_;  // where the symbols' names change
  std::vector<OtherCode> other_code_;
  DwarfLosses losses_;
  size_t symbol_functions_ = 0;
};

// Makes a GSYM file of all functions. `functions` are released before the file
// is put together. kNotFound: there is neither DWARF nor a symbol.
Result<GsymConversion> ConvertFunctionsToGsym(
    std::unique_ptr<ElfFunctions> functions, const GsymConvertOptions& options);

// A GSYM file in which lookups of some addresses have the same results as in
// one of all functions; it may say anything of others.
struct GsymExcerpt {
  std::vector<std::byte> bytes;
  uint64_t entry_bytes = 0;  // of the units that were read for it
};
// Makes one. `addresses` rise. Reads the units that may have code there, and in
// them little more than the functions there. kLimit: that would be more than
// `max_entry_bytes`, or it cannot be told which units they are.
Result<GsymExcerpt> ConvertExcerptToGsym(ElfFunctions& functions,
                                         std::span<const uint64_t> addresses,
                                         uint64_t max_entry_bytes);

// Makes the GSYM file of an ELF file. Peak memory is that of its DWARF
// sections, of the result, and of a unit per thread. kNotFound: there is
// neither DWARF nor a symbol.
Result<GsymConversion> ConvertElfToGsym(const ByteSource& source,
                                        const DebugFileFinder& finder,
                                        const GsymConvertOptions& options);

// The same of the text of a Breakpad symbol file. kUnsupported, kCorrupt: it is
// none; kNotFound: it has no function.
Result<GsymConversion> ConvertBreakpadToGsym(std::string_view text,
                                             const GsymConvertOptions& options);
BreakpadReadOptions BreakpadOptionsOf(const DwarfReadOptions& options);

}  // namespace ksym
