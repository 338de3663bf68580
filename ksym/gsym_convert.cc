#include "ksym/gsym_convert.h"

#include <elf.h>

#include <algorithm>
#include <span>
#include <unordered_map>
#include <utility>

#include "ksym/elf/section_bytes.h"
#include "ksym/elf/symbol_reader.h"

namespace ksym {
namespace {

// A string table that is read whole; the largest browsers' have 500 MB.
constexpr uint64_t kMaxNameBytes = uint64_t{1} << 30;

// .symtab, else .dynsym, if it is in the file.
const ElfSection* FindSymbols(const ElfImage& image) {
  for (const uint32_t type : {SHT_SYMTAB, SHT_DYNSYM}) {
    for (const ElfSection& section : image.sections()) {
      if (section.type == type && section.size > 0) return &section;
    }
  }
  return nullptr;
}

}  // namespace

void RunUnitsInTurn(const UnitWork& work) {
  UnitFunctions unit;
  for (size_t i = 0; i < work.unit_count; ++i) {
    work.read(i, unit);
    work.add(unit);
  }
}

void ElfFunctions::LoadSymbols(const ByteSource& source,
                               const ElfImage& image) {
  const ElfSection* table = FindSymbols(image);
  if (table == nullptr || table->link >= image.sections().size()) return;
  const auto strings =
      SectionBytes::Open(source, image, image.sections()[table->link]);
  if (!strings || strings->size() > kMaxNameBytes ||
      (!strings->is_unpacked() && strings->size() > source.size())) {
    return;
  }
  symbol_names_.resize(static_cast<size_t>(strings->size()));
  SymbolReader reader(source, image);
  if (!strings->ReadAt(0, symbol_names_) ||
      !reader.ReadSymbols(*table, *strings, NameTable::kSymtab)) {
    symbol_names_.clear();
    return;
  }
  for (const SymbolCandidate& symbol : std::move(reader).Take()) {
    ByteCursor in(symbol_names_);
    in.Seek(symbol.name);
    const auto name = in.ReadCString();
    // A label is a jump target more often than a function.
    if (symbol.label || name.empty() || symbol.end <= symbol.start) continue;
    symbols_.push_back({.start = symbol.start.value,
                        .end = symbol.end.value,
                        .is_sized = symbol.sized,
                        .name = name});
  }
  std::ranges::stable_sort(symbols_, {}, &Symbol::start);
}

Status ElfFunctions::LoadDwarf(const ByteSource& source, const ElfImage& image,
                               const DwarfFileFinder& finder) {
  auto reader = DwarfFunctionReader::Open(source, image, finder);
  if (!reader) return Fail(std::move(reader.error()));
  losses_.Add(reader->losses());
  dwarf_ = std::make_unique<DwarfFunctionReader>(std::move(*reader));
  return {};
}

Result<ElfFunctions> ElfFunctions::Open(const ByteSource& source,
                                        const DebugFileFinder& finder,
                                        uint64_t max_section_bytes) {
  const auto image = ElfImage::Parse(source);
  if (!image) return Fail(image.error());
  if (!image->section_error()) return Fail(image->section_error().error());
  ElfFunctions functions;
  functions.build_id_ = image->build_id();
  functions.dwarf_status_ = functions.LoadDwarf(
      source, *image,
      {finder.file_path, finder.file_path, finder.open, max_section_bytes});
  functions.LoadSymbols(source, *image);
  const ElfSection* symtab = FindSymbols(*image);
  const bool is_stripped = symtab == nullptr || symtab->type != SHT_SYMTAB;
  if (functions.has_dwarf() && !is_stripped) return functions;
  const auto debug = FindDebugFile(source, *image, finder);
  if (!debug) return functions;
  const auto debug_image = ElfImage::Parse(*debug);
  if (!debug_image) return functions;
  if (!functions.has_dwarf()) {
    // What the debug file refers to is named from where it is.
    const std::string path = std::string(kBuildIdFolder) +
                             ToHex(image->build_id()).substr(0, 2) + "/debug";
    functions.dwarf_status_ = functions.LoadDwarf(
        *debug, *debug_image,
        {path, finder.file_path, finder.open, max_section_bytes});
  }
  const ElfSection* debug_symbols = FindSymbols(*debug_image);
  if (is_stripped && debug_symbols != nullptr &&
      debug_symbols->type == SHT_SYMTAB) {
    functions.symbols_.clear();
    functions.LoadSymbols(*debug, *debug_image);
  }
  return functions;
}

// The symbols at one address are few, and in the table's order. As
// llvm-symbolizer does: of the largest ones the last in the table, which has
// local symbols first.
std::string_view ElfFunctions::NameAt(uint64_t start,
                                      std::string_view dwarf_name) const {
  const auto size = [](const Symbol& symbol) {
    return symbol.is_sized ? symbol.end - symbol.start : 0;
  };
  auto symbol = std::ranges::lower_bound(symbols_, start, {}, &Symbol::start);
  const Symbol* best = nullptr;
  for (; symbol != symbols_.end() && symbol->start == start; ++symbol) {
    if (best == nullptr || size(*symbol) >= size(*best)) best = &*symbol;
  }
  return best == nullptr ? dwarf_name : best->name;
}

void ElfFunctions::SetNames(FunctionBatch& batch) const {
  for (FunctionInfo& function : batch.functions) {
    function.name = NameAt(function.range.start, function.name);
  }
}

// Padding, which is most of it, has no symbol and is dropped.
void ElfFunctions::KeepOtherCode(const UnitFunctions& unit) {
  for (const FunctionInfo& code : unit.other_code) {
    const auto symbol = std::ranges::lower_bound(symbols_, code.range.start, {},
                                                 &Symbol::start);
    if (symbol == symbols_.end() || symbol->start >= code.range.end) continue;
    const auto rows =
        std::span(unit.batch.lines).subspan(code.first_line, code.line_count);
    OtherCode& kept = other_code_.emplace_back();
    kept.range = code.range;
    kept.files.resize(1);
    kept.lines.assign(rows.begin(), rows.end());
    std::unordered_map<uint32_t, uint32_t> numbers = {{0, 0}};
    for (LineRow& row : kept.lines) {
      const auto [at, is_new] = numbers.try_emplace(
          row.file, static_cast<uint32_t>(kept.files.size()));
      if (is_new) kept.files.push_back(unit.batch.files[row.file]);
      row.file = at->second;
    }
  }
}

// The lines at a symbol; `other_code_` is sorted by now.
void ElfFunctions::AddOtherLines(FunctionInfo& function,
                                 FunctionBatch& batch) const {
  function.first_line = static_cast<uint32_t>(batch.lines.size());
  const AddressRange& range = function.range;
  auto code = std::ranges::upper_bound(
      other_code_, range.start, {},
      [](const OtherCode& other) { return other.range.start; });
  if (code == other_code_.begin()) return;
  --code;
  if (!code->range.Contains(range.start)) return;
  const auto first_file = static_cast<uint32_t>(batch.files.size()) - 1;
  batch.files.insert(batch.files.end(), code->files.begin() + 1,
                     code->files.end());
  auto row =
      std::ranges::upper_bound(code->lines, range.start, {}, &LineRow::address);
  if (row != code->lines.begin()) --row;
  for (; row != code->lines.end() && row->address < range.end; ++row) {
    LineRow& added = batch.lines.emplace_back(*row);
    added.address = std::max(added.address, range.start);
    if (added.file != 0) added.file += first_file;
  }
  if (range.end > code->range.end) {
    batch.lines.push_back({.address = code->range.end, .file = 0, .line = 0});
  }
  function.line_count =
      static_cast<uint32_t>(batch.lines.size() - function.first_line);
}

// A symbol reaches to its end, or to the next one or the next function.
FunctionBatch ElfFunctions::SymbolsOutside(
    std::vector<AddressRange> covered) const {
  FunctionBatch batch;
  batch.files.resize(1);
  std::ranges::sort(covered, {}, &AddressRange::start);
  uint64_t covered_end = 0;  // of all functions that start before the symbol
  auto next = covered.begin();
  for (size_t i = 0; i < symbols_.size();) {
    AddressRange range = {symbols_[i].start, symbols_[i].end};
    for (; i < symbols_.size() && symbols_[i].start == range.start; ++i) {
      range.end = std::max(range.end, symbols_[i].end);
    }
    for (; next != covered.end() && next->start <= range.start; ++next) {
      covered_end = std::max(covered_end, next->end);
    }
    if (range.start < covered_end) continue;
    if (i < symbols_.size()) range.end = std::min(range.end, symbols_[i].start);
    if (next != covered.end()) range.end = std::min(range.end, next->start);
    FunctionInfo function = {.name = NameAt(range.start, {}), .range = range};
    AddOtherLines(function, batch);
    batch.functions.push_back(function);
  }
  return batch;
}

void ElfFunctions::ForEachBatch(
    const DwarfReadOptions& options, const UnitRunner& runner,
    const std::function<void(const FunctionBatch&)>& add) {
  std::vector<AddressRange> covered;
  UnitWork work;
  work.unit_count = has_dwarf() ? dwarf_->unit_count() : 0;
  work.read = [&](size_t index, UnitFunctions& out) {
    dwarf_->ReadUnit(index, options, out);
    SetNames(out.batch);
  };
  work.add = [&](const UnitFunctions& unit) {
    for (const FunctionInfo& function : unit.batch.functions) {
      covered.push_back(function.range);
    }
    losses_.Add(unit.losses);
    KeepOtherCode(unit);
    add(unit.batch);
  };
  runner(work);
  std::ranges::sort(other_code_, {},
                    [](const OtherCode& code) { return code.range.start; });
  const FunctionBatch rest = SymbolsOutside(std::move(covered));
  symbol_functions_ = rest.functions.size();
  add(rest);
}

Result<GsymConversion> ConvertElfToGsym(const ByteSource& source,
                                        const DebugFileFinder& finder,
                                        const GsymConvertOptions& options) {
  GsymConversion conversion;
  GsymWriter writer(options.file);
  std::string uuid;
  {
    auto functions =
        ElfFunctions::Open(source, finder, options.max_section_bytes);
    if (!functions) return Fail(std::move(functions.error()));
    functions->ForEachBatch(
        options.dwarf, options.runner,
        [&](const FunctionBatch& batch) { writer.Add(batch); });
    conversion.dwarf_losses = functions->losses();
    conversion.symbol_functions = functions->symbol_functions();
    conversion.has_dwarf = functions->has_dwarf();
    uuid = functions->build_id();
    if (writer.function_count() == 0) {
      const Status& status = functions->dwarf_status();
      return Fail(ErrorCode::kNotFound,
                  status ? "no function in its DWARF or symbols"
                         : status.error().message() + ", and no symbol");
    }
    // The debug data are released before the file is put together.
  }
  auto status = conversion.Finish(std::move(writer), uuid);
  if (!status) return Fail(std::move(status.error()));
  return conversion;
}

Status GsymConversion::Finish(GsymWriter writer, std::string_view build_id) {
  auto made = std::move(writer).Finish(build_id.substr(0, kGsymMaxUuidBytes),
                                       file_losses);
  if (!made) return Fail(std::move(made.error()));
  bytes = std::move(*made);
  const auto file = GsymFile::Parse(bytes);
  if (file) functions = file->function_count();
  return {};
}

}  // namespace ksym
