// SPDX-License-Identifier: Apache-2.0
#include "ksym/dwarf/unit_reader.h"

#include <dwarf.h>

#include <algorithm>
#include <string>
#include <utility>

namespace ksym {
namespace {

// Compilers nest by scopes of the source; hostile data nests per byte.
constexpr size_t kMaxDepth = 4096;
// Hostile data can refer to one list or one table from every entry. More
// pieces, ranges and rows than these are not looked at.
constexpr size_t kMaxPieces = 4096;
constexpr uint64_t kMaxRangesRead = uint64_t{16} << 20;
constexpr uint64_t kMaxInlinePieces = uint64_t{16} << 20;
constexpr uint64_t kMaxRows = uint64_t{1} << 20;

// Sorts, and joins ranges that touch.
void Normalize(std::vector<AddressRange>& ranges) {
  if (ranges.size() < 2) return;
  std::ranges::sort(ranges, {}, &AddressRange::start);
  size_t kept = 0;
  for (size_t i = 1; i < ranges.size(); ++i) {
    if (ranges[i].start <= ranges[kept].end) {
      ranges[kept].end = std::max(ranges[kept].end, ranges[i].end);
    } else {
      ranges[++kept] = ranges[i];
    }
  }
  ranges.resize(kept + 1);
}

// Whether the normalized `ranges` have all of `part`.
bool ContainsRange(const std::vector<AddressRange>& ranges,
                   const AddressRange& part) {
  const auto next =
      std::ranges::upper_bound(ranges, part.start, {}, &AddressRange::start);
  return next != ranges.begin() && (next - 1)->end >= part.end;
}

}  // namespace

void DwarfLosses::Add(const DwarfLosses& other) {
  malformed_units += other.malformed_units;
  line_tables += other.line_tables;
  split_files += other.split_files;
  ranges += other.ranges;
  inlined_calls += other.inlined_calls;
  functions += other.functions;
  if (first.empty()) first = other.first;
}

bool UnitReader::ReadAttributes(const DwarfUnit& unit,
                                const Abbreviation& abbreviation,
                                ByteCursor& in, Entry& entry) {
  for (const AttributeSpec& spec :
       unit.abbreviations->Attributes(abbreviation)) {
    FormValue* value = nullptr;
    switch (spec.name) {
      case DW_AT_low_pc:
        value = &entry.low_pc;
        break;
      case DW_AT_high_pc:
        value = &entry.high_pc;
        break;
      case DW_AT_ranges:
        value = &entry.ranges;
        break;
      case DW_AT_abstract_origin:
      case DW_AT_specification:
        value = &entry.origin;
        break;
      case DW_AT_call_file:
        value = &entry.call_file;
        break;
      case DW_AT_call_line:
        value = &entry.call_line;
        break;
      case DW_AT_call_column:
        value = &entry.call_column;
        break;
      default:
        break;
    }
    const bool ok = value != nullptr ? ReadForm(spec, unit.format, in, *value)
                                     : SkipForm(spec.form, unit.format, in);
    if (!ok) return false;
  }
  return in.ok();
}

// Normalized; empty when there is none.
std::vector<AddressRange> UnitReader::CodeOf(const Entry& entry) {
  std::vector<AddressRange> ranges;
  if (entry.ranges.is_set()) {
    if (ranges_read_ > kMaxRangesRead ||
        !in_.file.ReadRanges(in_.unit, entry.ranges, ranges)) {
      ++losses_.ranges;
    }
    ranges_read_ += ranges.size();
    Normalize(ranges);
    return ranges;
  }
  const auto low = in_.file.AddressOf(in_.unit, entry.low_pc);
  if (!low || !entry.high_pc.is_set()) return ranges;
  const auto high = in_.file.AddressOf(in_.unit, entry.high_pc);
  // A high_pc that is a constant is a size (DWARF 5, section 2.17.2).
  const uint64_t end = high ? *high : *low + entry.high_pc.number;
  if (end > *low) ranges.push_back({*low, end});
  return ranges;
}

// Pieces outside of the code are those of functions that the linker dropped;
// no piece goes on behind its section.
void UnitReader::KeepCode(std::vector<AddressRange>& pieces) const {
  std::erase_if(pieces, [this](AddressRange& piece) {
    const CodeRanges::Range* section = in_.code.Find(piece.start);
    if (section == nullptr) return true;
    piece.end = std::min(piece.end, section->end);
    return false;
  });
}

// Inlined calls and rows are cut with their pieces.
void UnitReader::CutAtEdges(std::vector<AddressRange>& pieces) const {
  const auto edges = in_.options.edges;
  for (size_t i = 0; i < pieces.size() && pieces.size() < kMaxPieces; ++i) {
    const auto edge = std::ranges::upper_bound(edges, pieces[i].start);
    if (edge == edges.end() || *edge >= pieces[i].end) continue;
    const AddressRange rest = {*edge, pieces[i].end};
    pieces[i].end = *edge;
    pieces.insert(pieces.begin() + static_cast<ptrdiff_t>(i) + 1, rest);
  }
}

void UnitReader::DropUnwanted(std::vector<AddressRange>& pieces) {
  std::erase_if(pieces, [this](const AddressRange& piece) {
    if (in_.options.Wants(piece)) return false;
    // Code of a function all the same: AddOtherCode() must not take its rows
    // for code that has none.
    unwanted_.push_back(piece);
    return true;
  });
}

void UnitReader::Begin(const Entry& entry, uint64_t offset, Scope& scope) {
  scope = {};
  std::vector<AddressRange> pieces = CodeOf(entry);
  KeepCode(pieces);
  if (pieces.empty()) return;
  if (pieces.size() > kMaxPieces) {
    ++losses_.functions;
    return;
  }
  // Most functions are out of all windows, and those are not cut. The others
  // are cut as a whole: how many cuts there are at most is of all pieces.
  const bool is_wanted = std::ranges::any_of(
      pieces, [this](const auto& piece) { return in_.options.Wants(piece); });
  if (is_wanted) CutAtEdges(pieces);
  DropUnwanted(pieces);
  if (pieces.empty()) return;
  if (open_count_ == open_.size()) open_.emplace_back();
  Function& function = open_[open_count_++];
  function.entry = offset;
  function.pieces = std::move(pieces);
  function.inlines.clear();
  scope.function = static_cast<uint32_t>(open_count_);
  scope.ends_function = true;
}

void UnitReader::AddInline(const Entry& entry, Scope& scope) {
  std::vector<AddressRange> ranges = CodeOf(entry);
  if (ranges.empty()) return;
  Function& function = open_[scope.function - 1];
  Function::Inline call;
  call.parent = scope.inlined;
  call.depth =
      scope.inlined == 0 ? 1 : function.inlines[scope.inlined - 1].depth + 1;
  call.call_file = in_.lines.FileIndex(entry.call_file.number);
  // Number 0 is a real file in DWARF 5, so what is not said must not go through
  // FileIndex().
  if (!entry.call_file.is_set()) call.call_file = 0;
  call.call_line = static_cast<uint32_t>(entry.call_line.number);
  call.call_column = static_cast<uint32_t>(entry.call_column.number);
  const auto origin = in_.file.Refer(in_.unit, entry.origin);
  if (origin) call.name = names_.Find(*origin->file, origin->offset);
  call.ranges = std::move(ranges);
  function.inlines.push_back(std::move(call));
  scope.inlined = static_cast<uint32_t>(function.inlines.size());
}

// A compiler may move code of an inlined call out of what it says the caller
// has; the call is there all the same, so the callers have it too.
void UnitReader::WidenParents(Function& function) {
  // Calls follow those that they are in, so from the last on each parent is
  // widened before it widens its own.
  for (size_t i = function.inlines.size(); i > 0; --i) {
    const Function::Inline& call = function.inlines[i - 1];
    if (call.parent == 0) continue;
    auto& outer = function.inlines[call.parent - 1].ranges;
    std::vector<AddressRange> missing;
    for (const AddressRange& range : call.ranges) {
      if (!ContainsRange(outer, range)) missing.push_back(range);
    }
    if (missing.empty()) continue;
    outer.insert(outer.end(), missing.begin(), missing.end());
    Normalize(outer);
  }
}

void UnitReader::EmitInlines(const Function& function,
                             const AddressRange& piece) {
  for (const Function::Inline& call : function.inlines) {
    InlinedCall out = {call.name,
                       call.depth,
                       call.call_file,
                       call.call_line,
                       static_cast<uint32_t>(batch_.ranges.size()),
                       0,
                       call.call_column};
    auto range = std::ranges::upper_bound(call.ranges, piece.start, {},
                                          &AddressRange::end);
    for (; range != call.ranges.end() && range->start < piece.end; ++range) {
      batch_.ranges.push_back({std::max(range->start, piece.start),
                               std::min(range->end, piece.end)});
      ++out.range_count;
    }
    if (out.range_count > 0) batch_.inlines.push_back(out);
  }
}

void UnitReader::Emit(const Function& function) {
  const std::string_view name = names_.Find(in_.file, function.entry);
  bool with_inlines = true;
  if (function.pieces.size() * function.inlines.size() > kMaxInlinePieces) {
    losses_.inlined_calls += function.inlines.size();
    with_inlines = false;
  }
  // Functions of one unit share code seldom; hostile ones could each copy the
  // whole table.
  const uint64_t row_limit = 4 * in_.lines.row_count() + kMaxRows;
  for (const AddressRange& piece : function.pieces) {
    FunctionInfo info = {
        .name = name,
        .range = piece,
        .first_line = static_cast<uint32_t>(batch_.lines.size()),
        .first_inline = static_cast<uint32_t>(batch_.inlines.size())};
    if (batch_.lines.size() <= row_limit) {
      in_.lines.AppendRows(piece, batch_.lines);
    } else {
      ++losses_.functions;
    }
    info.line_count =
        static_cast<uint32_t>(batch_.lines.size() - info.first_line);
    if (with_inlines) EmitInlines(function, piece);
    info.inline_count =
        static_cast<uint32_t>(batch_.inlines.size() - info.first_inline);
    // One row that knows nothing is of use to inlined calls only.
    if (info.inline_count == 0 && info.line_count == 1 &&
        batch_.lines.back().file == 0) {
      batch_.lines.pop_back();
      info.line_count = 0;
    }
    batch_.functions.push_back(info);
  }
}

void UnitReader::EndFunction() {
  Function& function = open_[--open_count_];
  WidenParents(function);
  Emit(function);
}

Status UnitReader::ReadEntry(uint64_t code, uint64_t offset, ByteCursor& in) {
  const Abbreviation* abbreviation = in_.unit.abbreviations->Find(code);
  if (abbreviation == nullptr) {
    return Fail(ErrorCode::kCorrupt,
                ".debug_info at offset " + std::to_string(offset) +
                    ": no abbreviation " + std::to_string(code));
  }
  // Blocks and the like have code of no function of their own: what is in them
  // belongs to what they are in.
  Scope scope = scopes_.empty() ? Scope() : scopes_.back();
  scope.ends_function = false;
  const bool is_function = abbreviation->tag == DW_TAG_subprogram;
  const bool is_inline =
      abbreviation->tag == DW_TAG_inlined_subroutine && scope.function != 0 &&
      in_.options.inlines == DwarfReadOptions::Inlines::kRead;
  bool ok = true;
  if (abbreviation->has_code && (is_function || is_inline)) {
    Entry entry;
    ok = ReadAttributes(in_.unit, *abbreviation, in, entry);
    if (ok && is_function) Begin(entry, offset, scope);
    if (ok && is_inline) AddInline(entry, scope);
  } else {
    ok = SkipEntry(*in_.unit.abbreviations, *abbreviation, in_.unit.format, in);
    if (is_function) scope = {};  // what is in it describes, and has no code
  }
  if (!ok || !in.ok()) {
    return Fail(ErrorCode::kCorrupt, ".debug_info at offset " +
                                         std::to_string(offset) +
                                         ": an entry is malformed");
  }
  if (!abbreviation->has_children) {
    if (scope.ends_function) EndFunction();
    return {};
  }
  if (scopes_.size() >= kMaxDepth) {
    return Fail(ErrorCode::kLimit, ".debug_info at offset " +
                                       std::to_string(offset) +
                                       ": entries nest too deeply");
  }
  scopes_.push_back(scope);
  return {};
}

Status UnitReader::ReadEntries(ByteCursor& in) {
  while (!in.AtEnd()) {
    const uint64_t offset = in.offset();
    const uint64_t code = in.ReadUleb128();
    if (code != 0) {
      const auto read = ReadEntry(code, offset, in);
      if (!read) return read;
      continue;
    }
    // Padding may follow the unit's own entry.
    if (scopes_.empty()) continue;
    if (scopes_.back().ends_function) EndFunction();
    scopes_.pop_back();
  }
  return {};
}

Status UnitReader::Run() {
  ByteCursor in(in_.file.info().first(static_cast<size_t>(in_.unit.end)));
  in.Seek(in_.unit.first_entry);
  const auto read = ReadEntries(in);
  // Also after a fault: functions that were begun are good up to there.
  while (open_count_ > 0) EndFunction();
  return read;
}

}  // namespace ksym
