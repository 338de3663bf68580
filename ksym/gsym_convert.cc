// SPDX-License-Identifier: Apache-2.0
#include "ksym/gsym_convert.h"

#include <elf.h>

#include <algorithm>
#include <limits>
#include <span>
#include <unordered_map>
#include <utility>

#include "ksym/base/keyed_hash.h"

namespace ksym {
void RunUnitsInTurn(const UnitWork& work) {
  UnitFunctions unit;
  for (size_t i = 0; i < work.unit_count; ++i) {
    work.read(i, unit);
    work.add(unit);
  }
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
  functions.symbols_.Load(source, *image);
  const ElfSection* symtab = FindSymbolSection(*image);
  const bool is_stripped = symtab == nullptr || symtab->type != SHT_SYMTAB;
  if (!functions.has_dwarf() || is_stripped) {
    functions.AddDebugFile({source, *image, finder, max_section_bytes},
                           is_stripped);
  }
  // Stubs alone are nothing to make a file of.
  if (functions.has_dwarf() || !functions.symbols_.empty()) {
    functions.symbols_.AddStubs(source, *image);
  }
  // Last, when all symbols are there: functions are cut where these begin.
  functions.edges_ = functions.symbols_.Edges();
  return functions;
}

// What the program itself lacks.
void ElfFunctions::AddDebugFile(const Program& program, bool is_stripped) {
  const auto debug =
      FindDebugFile(program.source, program.image, program.finder);
  if (!debug) return;
  const auto image = ElfImage::Parse(*debug);
  if (!image) return;
  if (!has_dwarf()) {
    // What the debug file refers to is named from where it is.
    const std::string path = std::string(kBuildIdDirectory) +
                             ToHex(program.image.build_id()).substr(0, 2) +
                             "/debug";
    dwarf_status_ = LoadDwarf(*debug, *image,
                              {path, program.finder.file_path,
                               program.finder.open, program.max_section_bytes});
  }
  const ElfSection* symbols = FindSymbolSection(*image);
  if (is_stripped && symbols != nullptr && symbols->type == SHT_SYMTAB) {
    symbols_.Load(*debug, *image);
  }
}

void ElfFunctions::SetNames(FunctionBatch& batch) const {
  for (FunctionInfo& function : batch.functions) {
    function.name = symbols_.NameAt(function.range.start, function.name);
  }
}

// Padding, which is most of it, has no symbol and is dropped.
void ElfFunctions::KeepOtherCode(const UnitFunctions& unit) {
  for (const FunctionInfo& code : unit.other_code) {
    const auto& symbols = symbols_.symbols();
    const auto symbol = std::ranges::lower_bound(
        symbols, code.range.start, {}, &FunctionSymbols::Symbol::start);
    if (symbol == symbols.end() || symbol->start >= code.range.end) continue;
    const auto rows =
        std::span(unit.batch.lines).subspan(code.first_line, code.line_count);
    OtherCode& kept = other_code_.emplace_back();
    // A copy, as the unit's memory is used for the next one.
    kept.range = code.range;
    kept.files.resize(1);
    kept.lines.assign(rows.begin(), rows.end());
    std::unordered_map<uint32_t, uint32_t, NumberHash> numbers = {{0, 0}};
    for (LineRow& row : kept.lines) {
      const auto [at, is_new] = numbers.try_emplace(
          row.file, static_cast<uint32_t>(kept.files.size()));
      if (is_new) kept.files.push_back(unit.batch.files[row.file]);
      row.file = at->second;
    }
  }
}

// The lines at a symbol; `other_code_` is sorted by now.
void ElfFunctions::AddOtherLines(FunctionInfo& function, FunctionBatch& batch,
                                 CodeFiles& last) const {
  function.first_line = static_cast<uint32_t>(batch.lines.size());
  const AddressRange& range = function.range;
  auto code = std::ranges::upper_bound(
      other_code_, range.start, {},
      [](const OtherCode& other) { return other.range.start; });
  if (code == other_code_.begin()) return;
  --code;
  if (!code->range.Contains(range.start)) return;
  if (last.code != &*code) {
    last = {&*code, static_cast<uint32_t>(batch.files.size()) - 1};
    batch.files.insert(batch.files.end(), code->files.begin() + 1,
                       code->files.end());
  }
  auto row =
      std::ranges::upper_bound(code->lines, range.start, {}, &LineRow::address);
  if (row != code->lines.begin()) --row;
  for (; row != code->lines.end() && row->address < range.end; ++row) {
    LineRow& added = batch.lines.emplace_back(*row);
    added.address = std::max(added.address, range.start);
    if (added.file != 0) added.file += last.first_file;
  }
  if (range.end > code->range.end) {
    batch.lines.push_back({.address = code->range.end, .file = 0, .line = 0});
  }
  function.line_count =
      static_cast<uint32_t>(batch.lines.size() - function.first_line);
}

// A symbol reaches to its end, or to the next one or the next function.
FunctionBatch ElfFunctions::SymbolsOutside(
    std::vector<AddressRange> covered,
    std::span<const AddressRange> windows) const {
  FunctionBatch batch;
  batch.files.resize(1);
  std::ranges::sort(covered, {}, &AddressRange::start);
  uint64_t covered_end = 0;  // of all functions that start before the symbol
  auto next = covered.begin();
  CodeFiles last;
  const auto& symbols = symbols_.symbols();
  const auto add = [&](const AddressRange& range) {
    FunctionInfo function = {.name = symbols_.NameAt(range.start, {}),
                             .range = range};
    AddOtherLines(function, batch, last);
    batch.functions.push_back(function);
  };
  for (const AddressRange& window : windows) {
    auto symbol = std::ranges::lower_bound(symbols, window.start, {},
                                           &FunctionSymbols::Symbol::start);
    while (symbol != symbols.end() && symbol->start < window.end) {
      AddressRange range = {symbol->start, symbol->end};
      for (; symbol != symbols.end() && symbol->start == range.start;
           ++symbol) {
        range.end = std::max(range.end, symbol->end);
      }
      for (; next != covered.end() && next->start <= range.start; ++next) {
        covered_end = std::max(covered_end, next->end);
      }
      if (range.start < covered_end) continue;
      if (symbol != symbols.end()) {
        range.end = std::min(range.end, symbol->start);
      }
      if (next != covered.end()) range.end = std::min(range.end, next->start);
      add(range);
    }
  }
  return batch;
}

void ElfFunctions::RunUnits(
    UnitWork work, const UnitRunner& runner, const DwarfReadOptions& options,
    const std::function<void(const FunctionBatch&)>& add) {
  std::vector<AddressRange> covered;
  other_code_.clear();
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
  constexpr AddressRange kEverywhere = {0,
                                        std::numeric_limits<uint64_t>::max()};
  // After all units: only now is it known what has no function.
  const FunctionBatch rest = SymbolsOutside(
      std::move(covered),
      options.windows.empty() ? std::span(&kEverywhere, 1) : options.windows);
  symbol_functions_ = rest.functions.size();
  add(rest);
}

void ElfFunctions::ForEachBatch(
    const DwarfReadOptions& options, const UnitRunner& runner,
    const std::function<void(const FunctionBatch&)>& add) {
  DwarfReadOptions read = options;
  read.edges = edges_;
  UnitWork work;
  work.unit_count = has_dwarf() ? dwarf_->unit_count() : 0;
  work.read = [&](size_t index, UnitFunctions& out) {
    dwarf_->ReadUnit(index, read, out);
    SetNames(out.batch);
  };
  RunUnits(std::move(work), runner, read, add);
}

void ElfFunctions::ForEachBatchOf(
    const Excerpt& excerpt, const DwarfReadOptions& options,
    const std::function<void(const FunctionBatch&)>& add) {
  DwarfReadOptions read = options;
  read.edges = edges_;
  read.windows = excerpt.windows;
  UnitWork work;
  work.unit_count = excerpt.units.size();
  work.read = [&](size_t index, UnitFunctions& out) {
    dwarf_->ReadUnit(excerpt.units[index], read, out);
    SetNames(out.batch);
  };
  RunUnits(std::move(work), RunUnitsInTurn, read, add);
}

Result<GsymConversion> ConvertFunctionsToGsym(
    std::unique_ptr<ElfFunctions> functions,
    const GsymConvertOptions& options) {
  GsymConversion conversion;
  GsymWriter writer(options.file);
  functions->ForEachBatch(
      options.dwarf, options.runner,
      [&](const FunctionBatch& batch) { writer.Add(batch); });
  conversion.dwarf_losses = functions->losses();
  conversion.symbol_functions = functions->symbol_functions();
  conversion.has_dwarf = functions->has_dwarf();
  const Status dwarf = functions->dwarf_status();
  if (!dwarf && dwarf.error().code() != ErrorCode::kNotFound) {
    conversion.dwarf_error = dwarf.error().message();
  }
  const std::string uuid = functions->build_id();
  if (writer.function_count() == 0) {
    return Fail(ErrorCode::kNotFound,
                dwarf ? "no function in its DWARF or symbols"
                      : dwarf.error().message() + ", and no symbol");
  }
  // Frees the debug data before the file takes as much again.
  functions.reset();
  auto status = conversion.Finish(std::move(writer), uuid);
  if (!status) return Fail(std::move(status.error()));
  return conversion;
}

Result<GsymConversion> ConvertElfToGsym(const ByteSource& source,
                                        const DebugFileFinder& finder,
                                        const GsymConvertOptions& options) {
  auto functions =
      ElfFunctions::Open(source, finder, options.max_section_bytes);
  if (!functions) return Fail(std::move(functions.error()));
  return ConvertFunctionsToGsym(
      std::make_unique<ElfFunctions>(std::move(*functions)), options);
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
