// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "ksym/base/function_batch.h"
#include "ksym/base/result.h"
#include "ksym/dwarf/dwarf_file.h"
#include "ksym/elf/code_ranges.h"

namespace ksym {

// The rows of one unit's line program: DWARF 5, section 6.2, and those before
// it from version 2 on. Files are numbered as in the unit's attributes, see
// FileIndex(); files()[0] is unknown.
class LineTable {
 public:
  // Whether rows have their columns.
  enum class Columns : uint8_t { kSkip, kRead };
  explicit LineTable(Columns columns = Columns::kSkip) : columns_(columns) {}

  // Runs the program at `offset` of the file's .debug_line. Sequences that do
  // not begin in `code`, as those of functions that the linker dropped, are
  // left out. kCorrupt, kUnsupported, kLimit; the rows before the fault are
  // kept, as they were complete.
  Status Read(const DwarfFile& file, const DwarfUnit& unit, uint64_t offset,
              const CodeRanges& code);

  // Whether there are opcodes at all, by the header. Units without code have a
  // table for its files.
  static bool HasProgram(const DwarfFile& file, const DwarfUnit& unit,
                         uint64_t offset);

  const std::vector<SourceFile>& files() const { return files_; }
  std::vector<SourceFile> TakeFiles() && { return std::move(files_); }
  // Keeps the files, which inlined calls refer to.
  void DropRows() {
    rows_.clear();
    sequences_.clear();
  }
  size_t row_count() const { return rows_.size(); }

  // The code that has rows: sorted by start, as the program has it.
  std::vector<AddressRange> Covered() const;

  // What a number of the unit's attributes and rows is in files().
  uint32_t FileIndex(uint64_t number) const {
    const uint64_t index = number + (version_ >= 5 ? 1 : 0);
    return index < files_.size() ? static_cast<uint32_t>(index) : 0;
  }

  // Appends the rows of [range.start, range.end): one per address, the first
  // at the start. Where the table has nothing, the file and the line are 0.
  void AppendRows(const AddressRange& range, std::vector<LineRow>& out) const;

 private:
  struct Sequence {
    uint64_t start = 0;
    uint64_t end = 0;
    size_t first_row = 0;
    size_t row_count = 0;
  };
  struct Header;
  class Program;

  Status ReadExtent(const DwarfUnit& unit, ByteCursor& in, Header& header);
  Status ReadHeader(const DwarfFile& file, const DwarfUnit& unit,
                    ByteCursor& in, Header& header);
  bool ReadOldFiles(ByteCursor& in, std::string_view comp_dir);
  struct EntryFormat;
  bool ReadFiles(const DwarfFile& file, const DwarfUnit& unit,
                 const Header& header, ByteCursor& in);
  // false, as of AddFile(): there are too many.
  bool CountDirectory();
  bool AddFile(std::string_view comp_dir, std::string_view directory,
               std::string_view name);
  void AppendSequenceRows(const Sequence& sequence, const AddressRange& range,
                          std::vector<LineRow>& out) const;

  Columns columns_;
  uint16_t version_ = 0;
  size_t file_bytes_ = 0;
  std::vector<SourceFile> files_;
  std::vector<LineRow> rows_;
  std::vector<Sequence> sequences_;  // sorted by start
};

}  // namespace ksym
