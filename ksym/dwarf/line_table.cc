// SPDX-License-Identifier: Apache-2.0
#include "ksym/dwarf/line_table.h"

#include <dwarf.h>

#include <algorithm>
#include <array>
#include <limits>
#include <span>
#include <string>
#include <utility>

namespace ksym {
namespace {

// Directories and files of one unit, with their paths. A hostile header names
// one long directory many times, or millions of files that take no bytes in it.
constexpr size_t kMaxFileBytes = size_t{64} << 20;

std::unexpected<Error> Corrupt(uint64_t offset, std::string_view what) {
  return Fail(ErrorCode::kCorrupt, ".debug_line at offset " +
                                       std::to_string(offset) + ": " +
                                       std::string(what));
}

void AppendPath(std::string_view part, std::string& path) {
  if (part.empty()) return;
  if (!path.empty() && path.back() != '/') path += '/';
  path += part;
}

}  // namespace

struct LineTable::Header {
  UnitFormat format;
  size_t program = 0;  // offset in the section
  size_t end = 0;
  uint8_t min_instruction = 1;
  int8_t line_base = 0;
  uint8_t line_range = 1;
  std::array<uint8_t, 256> operand_counts = {};
  uint8_t opcode_base = 1;
};

// A directory and a name as they are written; the result is absolute if one of
// the three is.
bool LineTable::CountDirectory() {
  file_bytes_ += sizeof(std::string_view);
  return file_bytes_ <= kMaxFileBytes;
}

bool LineTable::AddFile(std::string_view comp_dir, std::string_view directory,
                        std::string_view name) {
  std::string path;
  if (!name.starts_with('/')) {
    if (!directory.starts_with('/')) path = comp_dir;
    AppendPath(directory, path);
  }
  AppendPath(name, path);
  file_bytes_ += sizeof(SourceFile) + path.size();
  const size_t slash = path.rfind('/');
  if (slash == std::string::npos) {
    files_.push_back({"", std::move(path)});
  } else {
    // The root's slash is its name.
    files_.push_back(
        {path.substr(0, std::max<size_t>(slash, 1)), path.substr(slash + 1)});
  }
  return file_bytes_ <= kMaxFileBytes;
}

// Versions 2 to 4: texts, the directories first.
bool LineTable::ReadOldFiles(ByteCursor& in, std::string_view comp_dir) {
  std::vector<std::string_view> directories = {""};
  for (;;) {
    const auto directory = in.ReadCString();
    if (!in.ok()) return false;
    if (directory.empty()) break;
    directories.push_back(directory);
    if (!CountDirectory()) return false;
  }
  for (;;) {
    const auto name = in.ReadCString();
    if (!in.ok()) return false;
    if (name.empty()) return true;
    const uint64_t directory = in.ReadUleb128();
    in.SkipLeb128();  // modification time
    in.SkipLeb128();  // length
    const auto text = directory < directories.size() ? directories[directory]
                                                     : std::string_view();
    if (!AddFile(comp_dir, text, name)) return false;
  }
}

// What entries of a version 5 list consist of, and one that was read.
struct LineTable::EntryFormat {
  std::vector<AttributeSpec> fields;
  std::string_view path;
  uint64_t directory = 0;

  bool Read(ByteCursor& in) {
    const auto count = in.Read<uint8_t>();
    fields.clear();
    for (unsigned i = 0; i < count && in.ok(); ++i) {
      const uint64_t content = in.ReadUleb128();
      const uint64_t form = in.ReadUleb128();
      fields.push_back({static_cast<uint16_t>(std::min<uint64_t>(
                            content, std::numeric_limits<uint16_t>::max())),
                        static_cast<uint16_t>(form)});
    }
    return in.ok();
  }

  bool ReadEntry(const DwarfFile& file, const DwarfUnit& unit,
                 const UnitFormat& format, ByteCursor& in) {
    path = {};
    directory = 0;
    for (const AttributeSpec& field : fields) {
      FormValue value;
      if (!ReadForm(field, format, in, value)) return false;
      if (field.name == DW_LNCT_path) path = file.String(unit, value);
      if (field.name == DW_LNCT_directory_index) directory = value.number;
    }
    return in.ok();
  }
};

// Version 5: two lists whose entries' form is stated.
bool LineTable::ReadFiles(const DwarfFile& file, const DwarfUnit& unit,
                          const Header& header, ByteCursor& in) {
  EntryFormat entry;
  std::vector<std::string_view> directories;
  if (!entry.Read(in)) return false;
  const uint64_t directory_count = in.ReadUleb128();
  // Entries without fields have no bytes, so running out of bytes would not end
  // the loop.
  if (directory_count > in.remaining()) return false;
  for (uint64_t i = 0; i < directory_count; ++i) {
    if (!entry.ReadEntry(file, unit, header.format, in)) return false;
    directories.push_back(entry.path);
    if (!CountDirectory()) return false;
  }
  if (!entry.Read(in)) return false;
  const uint64_t file_count = in.ReadUleb128();
  if (file_count > in.remaining()) return false;
  for (uint64_t i = 0; i < file_count; ++i) {
    if (!entry.ReadEntry(file, unit, header.format, in)) return false;
    const auto directory = entry.directory < directories.size()
                               ? directories[entry.directory]
                               : std::string_view();
    // The first directory is the compilation's own, which may be relative.
    const auto base = entry.directory == 0 ? std::string_view() : unit.comp_dir;
    if (!AddFile(base, directory, entry.path)) return false;
  }
  return true;
}

// The first fields of a header, which say where the program is.
Status LineTable::ReadExtent(const DwarfUnit& unit, ByteCursor& in,
                             Header& header) {
  const uint64_t offset = in.offset();
  header.format = {.version = 0, .address_bytes = 8, .offset_bytes = 4};
  header.format.address_bytes = unit.format.address_bytes;
  uint64_t length = in.Read<uint32_t>();
  // The mark of the 64-bit format (DWARF 5, section 7.4), which the table may
  // have without its unit having it.
  if (length == 0xffffffff) {
    header.format.offset_bytes = 8;
    length = in.Read<uint64_t>();
  }
  if (!in.ok() || length > in.remaining()) {
    return Corrupt(offset, "a table is cut off");
  }
  header.end = in.offset() + static_cast<size_t>(length);
  version_ = in.Read<uint16_t>();
  header.format.version = version_;
  if (version_ < 2 || version_ > 5) {
    return Fail(ErrorCode::kUnsupported,
                ".debug_line at offset " + std::to_string(offset) +
                    ": version " + std::to_string(version_));
  }
  if (version_ >= 5) {
    header.format.address_bytes = in.Read<uint8_t>();
    in.Read<uint8_t>();  // size of a segment selector
  }
  const uint64_t header_length = in.ReadSized(header.format.offset_bytes);
  if (header_length > header.end - std::min(header.end, in.offset())) {
    return Corrupt(offset, "a header is cut off");
  }
  header.program = in.offset() + static_cast<size_t>(header_length);
  return {};
}

bool LineTable::HasProgram(const DwarfFile& file, const DwarfUnit& unit,
                           uint64_t offset) {
  ByteCursor in(file.sections().Get(DebugSection::kLine));
  in.Seek(offset);
  LineTable table;
  Header header;
  return table.ReadExtent(unit, in, header) && header.program < header.end;
}

Status LineTable::ReadHeader(const DwarfFile& file, const DwarfUnit& unit,
                             ByteCursor& in, Header& header) {
  const uint64_t offset = in.offset();
  if (auto ok = ReadExtent(unit, in, header); !ok) return ok;
  header.min_instruction = in.Read<uint8_t>();
  if (version_ >= 4) in.Read<uint8_t>();  // operations of an instruction
  in.Read<uint8_t>();                     // default_is_stmt
  header.line_base = static_cast<int8_t>(in.Read<uint8_t>());
  header.line_range = in.Read<uint8_t>();
  header.opcode_base = in.Read<uint8_t>();
  for (unsigned i = 1; i < header.opcode_base; ++i) {
    header.operand_counts[i] = in.Read<uint8_t>();
  }
  files_ = {SourceFile()};
  const bool ok = version_ >= 5 ? ReadFiles(file, unit, header, in)
                                : ReadOldFiles(in, unit.comp_dir);
  // Special opcodes divide by line_range.
  if (!ok || !in.ok() || in.offset() > header.end || header.line_range == 0) {
    return Corrupt(offset, "a header is malformed");
  }
  return {};
}

// Runs the opcodes.
class LineTable::Program {
 public:
  Program(LineTable& table, const Header& header, const CodeRanges& code)
      : table_(table), header_(header), code_(code) {}

  // False at an unknown or truncated opcode.
  bool Run(ByteCursor in) {
    Reset();
    while (!in.AtEnd()) {
      const auto op = in.Read<uint8_t>();
      if (op >= header_.opcode_base) {
        RunSpecial(op);
      } else if (op == 0) {
        if (!RunExtended(in)) return false;
      } else {
        RunStandard(op, in);
      }
      if (!in.ok()) return false;
    }
    return true;
  }

 private:
  void Reset() {
    row_ = {.address = 0, .file = table_.FileIndex(1), .line = 1};
    sequence_ = {.first_row = table_.rows_.size()};
  }

  void Advance(uint64_t operation) {
    row_.address += operation * header_.min_instruction;
  }

  void RunSpecial(uint8_t op) {
    // One byte moves both the address and the line (DWARF 5, section 6.2.5.1).
    const unsigned adjusted = op - unsigned{header_.opcode_base};
    Advance(adjusted / header_.line_range);
    row_.line += static_cast<uint32_t>(
        header_.line_base + static_cast<int>(adjusted % header_.line_range));
    Push();
  }

  // One row per address, the last one. A step back begins a new sequence.
  void Push() {
    auto& rows = table_.rows_;
    if (rows.size() > sequence_.first_row) {
      if (rows.back().address == row_.address) {
        rows.back() = row_;
        return;
      }
      if (rows.back().address > row_.address) EndSequence(rows.back().address);
    }
    rows.push_back(row_);
  }

  void EndSequence(uint64_t end) {
    auto& rows = table_.rows_;
    sequence_.row_count = rows.size() - sequence_.first_row;
    if (sequence_.row_count > 0) {
      sequence_.start = rows[sequence_.first_row].address;
      sequence_.end = end;
      // The rows of a function that the linker dropped begin at 0 or another
      // mark; kept, they would overlap each other and real code.
      if (end > sequence_.start && code_.Find(sequence_.start) != nullptr) {
        table_.sequences_.push_back(sequence_);
      } else {
        rows.resize(sequence_.first_row);
      }
    }
    sequence_ = {.first_row = rows.size()};
  }

  void RunStandard(uint8_t op, ByteCursor& in) {
    switch (op) {
      case DW_LNS_copy:
        Push();
        break;
      case DW_LNS_advance_pc:
        Advance(in.ReadUleb128());
        break;
      case DW_LNS_advance_line:
        row_.line += static_cast<uint32_t>(in.ReadSleb128());
        break;
      case DW_LNS_set_file:
        row_.file = table_.FileIndex(in.ReadUleb128());
        break;
      case DW_LNS_set_column: {
        const auto column = static_cast<uint16_t>(in.ReadUleb128());
        if (table_.columns_ == Columns::kRead) row_.column = column;
        break;
      }
      case DW_LNS_const_add_pc:
        // As the special opcode 255 does, without a row (section 6.2.5.2).
        Advance((255u - header_.opcode_base) / header_.line_range);
        break;
      case DW_LNS_fixed_advance_pc:
        // Neither LEB128 nor times an instruction's size, for assemblers that
        // cannot write the others (section 6.2.5.2).
        row_.address += in.Read<uint16_t>();
        break;
      default:  // nothing that matters here, or unknown
        // The header counts operands so that opcodes of later versions can be
        // passed over.
        for (unsigned i = 0; i < header_.operand_counts[op]; ++i) {
          in.SkipLeb128();
        }
        break;
    }
  }

  bool RunExtended(ByteCursor& in) {
    const uint64_t length = in.ReadUleb128();
    if (length == 0 || length > in.remaining()) return false;
    const size_t end = in.offset() + static_cast<size_t>(length);
    switch (in.Read<uint8_t>()) {
      case DW_LNE_end_sequence:
        EndSequence(row_.address);
        Reset();
        break;
      case DW_LNE_set_address:
        // An opcode and an address of 4 or 8 bytes.
        if (length != 5 && length != 9) return false;
        row_.address = in.ReadSized(static_cast<size_t>(length - 1));
        break;
      default:
        break;
    }
    // The length goes, so that extended opcodes of vendors are passed over.
    in.Seek(end);
    return true;
  }

  LineTable& table_;
  const Header& header_;
  const CodeRanges& code_;
  LineRow row_;
  Sequence sequence_;
};

Status LineTable::Read(const DwarfFile& file, const DwarfUnit& unit,
                       uint64_t offset, const CodeRanges& code) {
  const auto section = file.sections().Get(DebugSection::kLine);
  ByteCursor in(section);
  in.Seek(offset);
  Header header;
  files_ = {SourceFile()};
  if (auto ok = ReadHeader(file, unit, in, header); !ok) return ok;
  ByteCursor program(section.first(header.end));
  program.Seek(header.program);
  const bool ok = Program(*this, header, code).Run(program);
  // Linkers put sequences in any order, and lookups search by address.
  std::ranges::sort(sequences_, {}, [](const Sequence& sequence) {
    return std::pair(sequence.start, sequence.first_row);
  });
  if (!ok) return Corrupt(offset, "a line program is malformed");
  return {};
}

void LineTable::AppendSequenceRows(const Sequence& sequence,
                                   const AddressRange& range,
                                   std::vector<LineRow>& out) const {
  const auto rows =
      std::span(rows_).subspan(sequence.first_row, sequence.row_count);
  auto row = std::ranges::upper_bound(rows, range.start, {}, &LineRow::address);
  if (row != rows.begin()) {
    LineRow first = *(row - 1);
    first.address = range.start;
    out.push_back(first);
  }
  for (; row != rows.end() && row->address < range.end; ++row) {
    out.push_back(*row);
  }
}

std::vector<AddressRange> LineTable::Covered() const {
  std::vector<AddressRange> covered;
  covered.reserve(sequences_.size());
  for (const Sequence& sequence : sequences_) {
    covered.push_back({sequence.start, sequence.end});
  }
  return covered;
}

void LineTable::AppendRows(const AddressRange& range,
                           std::vector<LineRow>& out) const {
  auto next =
      std::ranges::upper_bound(sequences_, range.start, {}, &Sequence::start);
  if (next != sequences_.begin() && (next - 1)->end > range.start) --next;
  uint64_t at = range.start;
  for (; next != sequences_.end() && next->start < range.end; ++next) {
    // Where sequences overlap, the one that begins first has the code: rows
    // must rise, one for each address.
    if (next->end <= at) continue;
    if (next->start > at) out.push_back({at, 0, 0});
    const uint64_t end = std::min(next->end, range.end);
    AppendSequenceRows(*next, {std::max(at, next->start), end}, out);
    at = end;
  }
  if (at < range.end) out.push_back({at, 0, 0});
}

}  // namespace ksym
