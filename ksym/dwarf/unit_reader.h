// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ksym/base/byte_cursor.h"
#include "ksym/base/function_batch.h"
#include "ksym/base/result.h"
#include "ksym/dwarf/dwarf_file.h"
#include "ksym/dwarf/entry_names.h"
#include "ksym/dwarf/line_table.h"
#include "ksym/elf/code_ranges.h"

namespace ksym {

// What could not be taken over from DWARF, by cause.
struct DwarfLosses {
  uint64_t malformed_units = 0;  // what is behind the fault is not read
  uint64_t line_tables = 0;      // malformed, from the fault on
  uint64_t split_files = 0;      // .dwo files that are not there or not ours
  uint64_t ranges = 0;           // lists that are malformed
  uint64_t inlined_calls = 0;    // no code within their function
  uint64_t functions = 0;        // more rows or pieces than a program has
  std::string first;             // the first of them, in words

  void Add(const DwarfLosses& other);
  void Note(const Error& error) {
    if (first.empty()) first = error.message();
  }
};

struct DwarfReadOptions {
  enum class Lines : uint8_t { kRead, kSkip };
  enum class Inlines : uint8_t { kRead, kSkip };
  Lines lines = Lines::kRead;
  LineTable::Columns columns = LineTable::Columns::kSkip;
  Inlines inlines = Inlines::kRead;
  // Whether functions without a linkage name have their scopes in front.
  enum class Scopes : uint8_t { kRead, kSkip };
  Scopes scopes = Scopes::kRead;
  // Addresses, rising, at which a function is cut into pieces: where a symbol
  // table begins to name it otherwise. Borrowed.
  std::span<const uint64_t> edges = {};
  // Not empty: only functions, or pieces of them, with code in one of these,
  // which rise and are disjoint. Borrowed.
  std::span<const AddressRange> windows = {};

  bool Wants(const AddressRange& code) const {
    return windows.empty() || TouchesAny(windows, code);
  }
};

// Goes through the entries of one unit once and collects its functions: those
// of all nesting, with the inlined calls in them. Borrows its arguments.
class UnitReader {
 public:
  struct Input {
    const DwarfFile& file;
    const DwarfUnit& unit;
    const CodeRanges& code;  // functions outside of it were dropped by linking
    const LineTable& lines;  // of the unit
    DwarfReadOptions options;
  };

  UnitReader(const Input& input, FunctionBatch& batch, DwarfLosses& losses)
      : in_(input),
        batch_(batch),
        losses_(losses),
        names_(input.file, input.unit,
               input.options.scopes == DwarfReadOptions::Scopes::kRead
                   ? &batch.made_names
                   : nullptr) {}

  // kCorrupt: the functions before the fault are in the batch.
  Status Run();

  // The code of functions that no window touches.
  std::vector<AddressRange> TakeUnwanted() { return std::move(unwanted_); }

 private:
  // A function that has been begun.
  struct Function {
    uint64_t entry = 0;
    std::vector<AddressRange> pieces;  // sorted, disjoint
    struct Inline {
      std::string_view name;
      uint32_t parent = 0;  // index + 1; 0: the function
      uint32_t depth = 1;
      uint32_t call_file = 0;
      uint32_t call_line = 0;
      uint32_t call_column = 0;
      std::vector<AddressRange> ranges;  // sorted, disjoint
    };
    std::vector<Inline> inlines;
  };
  // What the children of an entry belong to.
  struct Scope {
    uint32_t function = 0;  // index + 1 in open_; 0: none
    uint32_t inlined = 0;   // index + 1 in its inlines; 0: directly
    bool ends_function = false;
  };
  // The attributes that matter.
  struct Entry {
    FormValue low_pc, high_pc, ranges;
    FormValue origin;
    FormValue call_file, call_line, call_column;
  };

  Status ReadEntries(ByteCursor& in);
  Status ReadEntry(uint64_t code, uint64_t offset, ByteCursor& in);
  static bool ReadAttributes(const DwarfUnit& unit,
                             const Abbreviation& abbreviation, ByteCursor& in,
                             Entry& entry);
  std::vector<AddressRange> CodeOf(const Entry& entry);
  void Begin(const Entry& entry, uint64_t offset, Scope& scope);
  void AddInline(const Entry& entry, Scope& scope);
  void EndFunction();
  void KeepCode(std::vector<AddressRange>& pieces) const;
  void CutAtEdges(std::vector<AddressRange>& pieces) const;
  void DropUnwanted(std::vector<AddressRange>& pieces);
  void WidenParents(Function& function);
  void Emit(const Function& function);
  void EmitInlines(const Function& function, const AddressRange& piece);

  Input in_;
  FunctionBatch& batch_;
  DwarfLosses& losses_;
  std::vector<Scope> scopes_;
  std::vector<Function> open_;
  size_t open_count_ = 0;  // the others' memory is kept
  std::vector<AddressRange> unwanted_;
  EntryNames names_;
  uint64_t ranges_read_ = 0;
};

}  // namespace ksym
