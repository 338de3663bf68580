// SPDX-License-Identifier: Apache-2.0
#include "ksym/dwarf/function_reader.h"

#include <dwarf.h>
#include <algorithm>

#include <utility>
#include <vector>

#include "ksym/dwarf/line_table.h"
#include "ksym/elf/debug_file.h"

namespace ksym {
namespace {

constexpr size_t kMaxLinkBytes = 4096;

// The path and build-id in .gnu_debugaltlink.
struct AlternateLink {
  std::string path;
  std::string build_id;
};

std::optional<AlternateLink> ReadAlternateLink(const ByteSource& source,
                                               const ElfImage& image) {
  const ElfSection* section = image.FindSection(".gnu_debugaltlink");
  if (section == nullptr) return std::nullopt;
  const auto bytes = ReadSection(source, *section, kMaxLinkBytes);
  if (!bytes) return std::nullopt;
  ByteCursor in(*bytes);
  AlternateLink link;
  link.path = in.ReadCString();
  const auto id = in.ReadBytes(in.remaining());
  link.build_id.assign(reinterpret_cast<const char*>(id.data()), id.size());
  if (!in.ok() || link.path.empty()) return std::nullopt;
  return link;
}

std::string DirectoryOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? "" : path.substr(0, slash + 1);
}

Result<std::unique_ptr<DwarfFile>> LoadSplit(const ByteSource& source,
                                             uint64_t max_section_bytes) {
  const auto image = ElfImage::Parse(source);
  if (!image) return Fail(image.error());
  return DwarfFile::Load(source, *image,
                         {DebugSections::Kind::kSplit, max_section_bytes});
}

}  // namespace

Result<DwarfFunctionReader> DwarfFunctionReader::Open(
    const ByteSource& source, const ElfImage& image,
    const DwarfFileFinder& finder) {
  if (!DebugSections::HasInfo(image)) {
    return Fail(ErrorCode::kNotFound, "no .debug_info section");
  }
  DwarfFunctionReader reader(CodeRanges(image), finder);
  auto file = DwarfFile::Load(source, image,
                              {.max_section_bytes = finder.max_section_bytes},
                              reader.OpenAlternate(source, image));
  if (!file) return Fail(std::move(file.error()));
  reader.file_ = std::move(*file);
  // The units before the fault are good, so this is a loss and no failure.
  if (!reader.file_->index_status()) {
    ++reader.losses_.malformed_units;
    reader.losses_.Note(reader.file_->index_status().error());
  }
  reader.OpenPackage();
  return reader;
}

// The path as it is written, or beside the file, or by its build-id, which has
// to be the right one wherever it is.
std::unique_ptr<DwarfFile> DwarfFunctionReader::OpenAlternate(
    const ByteSource& source, const ElfImage& image) {
  const auto link = ReadAlternateLink(source, image);
  if (!link) return nullptr;
  const bool is_absolute = link->path.starts_with('/');
  std::vector<std::string> paths = {
      is_absolute ? link->path : DirectoryOf(finder_.file_path) + link->path};
  const auto by_id = DebugFilePaths(ToHex(link->build_id), std::nullopt, "");
  paths.insert(paths.end(), by_id.begin(), by_id.end());
  for (const std::string& path : paths) {
    if (!finder_.open) break;
    const auto opened = finder_.open(path);
    if (!opened) continue;
    const auto other = ElfImage::Parse(*opened);
    // Offsets into a file that dwz made for another build would give wrong
    // names without any sign of it.
    if (!other || other->build_id() != link->build_id) continue;
    auto file = DwarfFile::Load(
        *opened, *other, {.max_section_bytes = finder_.max_section_bytes});
    if (!file) continue;
    return std::move(*file);
  }
  ++losses_.split_files;
  losses_.Note(
      Error(ErrorCode::kNotFound, "the file that dwz made, " + link->path +
                                      ", is not there; names in it are lost"));
  return nullptr;
}

void DwarfFunctionReader::OpenPackage() {
  if (!finder_.open) return;
  bool has_skeletons = false;
  for (const DwarfUnit& unit : file_->units()) {
    has_skeletons = has_skeletons || unit.is_skeleton();
  }
  // Nothing would be asked of it, and a package is read whole.
  if (!has_skeletons) return;
  for (const std::string& path : {finder_.file_path, finder_.program_path}) {
    if (path.empty()) continue;
    const auto opened = finder_.open(path + ".dwp");
    if (!opened) continue;
    auto package = LoadSplit(*opened, finder_.max_section_bytes);
    if (!package) continue;
    for (const DwarfUnit& unit : file_->units()) {
      if (unit.dwo_id) (*package)->SetSkeleton(*file_, unit);
    }
    package_ = std::move(*package);
    return;
  }
}

Result<std::shared_ptr<const DwarfFile>> DwarfFunctionReader::OpenSplit(
    const DwarfUnit& skeleton) const {
  const uint64_t dwo_id = skeleton.dwo_id.value_or(0);
  // The package first: it is made for being kept with the program, while .dwo
  // files are where the program was built.
  if (package_ != nullptr && package_->FindSplitUnit(dwo_id) != nullptr) {
    return package_;
  }
  std::string path(skeleton.dwo_name);
  // The name is relative to the compilation's directory (section 3.1.2).
  if (!path.starts_with('/') && !skeleton.comp_dir.empty()) {
    path = std::string(skeleton.comp_dir) + "/" + path;
  }
  if (!finder_.open)
    return Fail(ErrorCode::kNotFound, path + ": not looked for");
  auto opened = finder_.open(path);
  // Or beside the program, where it may have been moved to.
  const std::string beside =
      DirectoryOf(finder_.file_path) + path.substr(path.rfind('/') + 1);
  if (!opened) opened = finder_.open(beside);
  if (!opened) return Fail(ErrorCode::kNotFound, path + ": not there");
  auto file = LoadSplit(*opened, finder_.max_section_bytes);
  if (!file) return Fail(std::move(file.error()).WithContext(path));
  // A later build leaves its file at the same path; only the id tells.
  if ((*file)->FindSplitUnit(dwo_id) == nullptr) {
    return Fail(ErrorCode::kNotFound, path + ": of another build");
  }
  (*file)->SetSkeleton(*file_, skeleton);
  return std::shared_ptr<const DwarfFile>(std::move(*file));
}

bool DwarfFunctionReader::MayHaveCode(size_t index) const {
  const DwarfUnit& unit = file_->units()[index];
  return unit.line_offset.is_set() && unit.tag != DW_TAG_partial_unit;
}

bool DwarfFunctionReader::CanListCode(size_t index) const {
  const DwarfUnit& unit = file_->units()[index];
  return unit.format.version > 2 || unit.ranges.is_set();
}

bool DwarfFunctionReader::HasNoCode(size_t index) const {
  const DwarfUnit& unit = file_->units()[index];
  if (unit.tag == DW_TAG_partial_unit) return true;
  return !unit.is_skeleton() && !unit.abbreviations->has_function_code() &&
         !(unit.line_offset.is_set() &&
           LineTable::HasProgram(*file_, unit, unit.line_offset.number));
}

void DwarfFunctionReader::ReadUnit(size_t index,
                                   const DwarfReadOptions& options,
                                   UnitFunctions& out) const {
  out.batch.Clear();
  out.other_code.clear();
  out.losses = {};
  out.split_file.reset();
  const DwarfUnit& unit = file_->units()[index];
  if (!unit.is_skeleton() || !unit.dwo_id) {
    ReadEntriesOf(*file_, unit, options, out);
    return;
  }
  auto split = OpenSplit(unit);
  if (!split) {
    ++out.losses.split_files;
    out.losses.Note(split.error());
    // The lines are here all the same, and perhaps the inlined calls.
    ReadEntriesOf(*file_, unit, options, out);
    return;
  }
  out.split_file = std::move(*split);
  const DwarfUnit* split_unit = out.split_file->FindSplitUnit(*unit.dwo_id);
  if (split_unit != nullptr) {
    ReadEntriesOf(*out.split_file, *split_unit, options, out);
  }
}

namespace {

// What the unit's line table has beside its functions, of which `functions`
// are those that are not in `out`.
void AddOtherCode(const LineTable& lines, const DwarfReadOptions& options,
                  std::vector<AddressRange> functions, UnitFunctions& out) {
  functions.reserve(functions.size() + out.batch.functions.size());
  for (const FunctionInfo& function : out.batch.functions) {
    functions.push_back(function.range);
  }
  std::ranges::sort(functions, {}, &AddressRange::start);
  const auto add = [&](uint64_t start, uint64_t end) {
    if (start >= end || !options.Wants({start, end})) return;
    FunctionInfo code = {.name = {}, .range = {start, end}};
    code.first_line = static_cast<uint32_t>(out.batch.lines.size());
    lines.AppendRows(code.range, out.batch.lines);
    code.line_count =
        static_cast<uint32_t>(out.batch.lines.size() - code.first_line);
    out.other_code.push_back(code);
  };
  auto next = functions.begin();
  uint64_t done = 0;  // everything in front of it has been looked at
  for (const AddressRange& sequence : lines.Covered()) {
    done = std::max(done, sequence.start);
    for (; next != functions.end() && next->start < sequence.end; ++next) {
      add(done, next->start);
      done = std::max(done, next->end);
    }
    add(done, sequence.end);
    done = std::max(done, sequence.end);
  }
}

}  // namespace

// Lines are always in the file itself, also of a unit that is split off it.
void DwarfFunctionReader::ReadEntriesOf(const DwarfFile& file,
                                        const DwarfUnit& unit,
                                        const DwarfReadOptions& options,
                                        UnitFunctions& out) const {
  // The lines come first, as each function takes its rows from the table when
  // it ends.
  LineTable lines(options.columns);
  if (unit.line_offset.is_set() && unit.tag != DW_TAG_partial_unit) {
    const auto read = lines.Read(*file_, unit, unit.line_offset.number, code_);
    if (!read) {
      ++out.losses.line_tables;
      out.losses.Note(read.error());
    }
  }
  // The files stay: inlined calls name theirs by number.
  if (options.lines == DwarfReadOptions::Lines::kSkip) lines.DropRows();
  UnitReader reader({file, unit, code_, lines, options}, out.batch, out.losses);
  const auto read = reader.Run();
  if (!read) {
    ++out.losses.malformed_units;
    out.losses.Note(read.error());
  }
  // After all functions, since it is what they leave; also those that no window
  // wants, or their code would come back as code without a function.
  AddOtherCode(lines, options, reader.TakeUnwanted(), out);
  out.batch.files = std::move(lines).TakeFiles();
}

}  // namespace ksym
