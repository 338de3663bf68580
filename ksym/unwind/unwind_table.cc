// SPDX-License-Identifier: Apache-2.0
#include "ksym/unwind/unwind_table.h"

#include <elf.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ksym/unwind/arch.h"
#include "ksym/unwind/call_frame_program.h"
#include "ksym/unwind/call_frame_section.h"
#include "ksym/unwind/call_frames.h"

namespace ksym {
namespace {

// Functions are aligned to this, and what is between is never run.
constexpr uint64_t kFunctionAlignment = 16;

Result<CodeExtent> FindCode(const ElfImage& image) {
  uint64_t start = std::numeric_limits<uint64_t>::max();
  uint64_t end = 0;
  for (const ElfSegment& segment : image.segments()) {
    if (!segment.executable) continue;
    start = std::min(start, segment.address.value);
    end = std::max(end, segment.address.value + segment.file_size);
  }
  if (end <= start) {
    return Fail(ErrorCode::kNotFound, "no executable segment");
  }
  if (end - start > std::numeric_limits<uint32_t>::max()) {
    return Fail(ErrorCode::kUnsupported,
                "executable segments that are 4 GiB apart");
  }
  return CodeExtent{.base = {start}, .size = end - start};
}

// A section's entries are sorted but for a few parts, or not at all.
template <typename Before>
void Sort(std::vector<FrameEntry>& entries, const Before& before) {
  constexpr int kFewParts = 8;
  auto sorted = std::is_sorted_until(entries.begin(), entries.end(), before);
  for (int i = 0; i < kFewParts && sorted != entries.end(); ++i) {
    const auto next = std::is_sorted_until(sorted, entries.end(), before);
    std::inplace_merge(entries.begin(), sorted, next, before);
    sorted = next;
  }
  if (sorted != entries.end())
    std::sort(entries.begin(), entries.end(), before);
}

// Makes the rows of one section.
class TableBuilder {
 public:
  TableBuilder(const CallFrameSection& section, UnwindTable& table)
      : section_(section), table_(table) {}

  Status Build();

 private:
  void TakeFunctions();
  Status AddFunction(const FrameEntry& entry, uint64_t end);
  void FillGap(uint64_t start);
  void Push(UnwindRow row, uint64_t address);
  void AddProblem(const FrameEntry& entry, const char* problem);
  uint64_t end() const { return table_.base.value + table_.size; }

  const CallFrameSection& section_;
  UnwindTable& table_;
  CallFrames frames_;
  uint64_t described_to_ = 0;  // an ElfAddress
};

Status TableBuilder::Build() {
  frames_ = ReadCallFrames(section_);
  if (frames_.is_cut) {
    return Fail(ErrorCode::kLimit,
                "too many entries of call-frame information");
  }
  table_.counts.bad_fdes = frames_.bad_functions;
  table_.first_problem = std::move(frames_.first_problem);
  TakeFunctions();
  described_to_ = table_.base.value;
  const auto& functions = frames_.functions;
  if (functions.empty()) return {};
  constexpr size_t kRowsOfAFunction = 8;
  table_.rows.reserve(functions.size() * kRowsOfAFunction);
  for (size_t i = 0; i < functions.size(); ++i) {
    uint64_t stop = functions[i].start + functions[i].size;
    if (i + 1 < functions.size()) {
      stop = std::min(stop, functions[i + 1].start);
    }
    const auto added = AddFunction(functions[i], stop);
    if (!added) return added;
  }
  if (described_to_ < end()) Push({}, described_to_);
  table_.rows.shrink_to_fit();
  return {};
}

// Puts the functions in order, and leaves out those that are not code, or not
// the first at their place.
void TableBuilder::TakeFunctions() {
  auto& functions = frames_.functions;
  std::erase_if(functions, [&](const FrameEntry& entry) {
    if (entry.size == 0) return true;
    const bool is_code =
        entry.start >= table_.base.value && entry.start + entry.size <= end();
    if (!is_code) AddProblem(entry, "it describes what is not executable");
    return !is_code;
  });
  table_.counts.fdes = static_cast<uint32_t>(functions.size());
  const auto before = [](const FrameEntry& a, const FrameEntry& b) {
    return a.start != b.start ? a.start < b.start : a.offset < b.offset;
  };
  Sort(functions, before);
  uint64_t reach = 0;
  for (const FrameEntry& entry : functions) {
    if (entry.start < reach) ++table_.counts.overlapping_fdes;
    reach = std::max(reach, entry.start + entry.size);
  }
  const auto same = [](const FrameEntry& a, const FrameEntry& b) {
    return a.start == b.start;
  };
  functions.erase(std::unique(functions.begin(), functions.end(), same),
                  functions.end());
}

// The rows of an entry from its start up to `stop`.
Status TableBuilder::AddFunction(const FrameEntry& entry, uint64_t stop) {
  FillGap(entry.start);
  described_to_ = stop;
  const size_t before = table_.rows.size();
  const CommonEntry& common = frames_.common[entry.common];
  if (common.is_signal_frame) {
    Push({0, 0, 0, MakeRule(CfaKind::kSignal)}, entry.start);
    return {};
  }
  CallFrameProgram program(section_, common, entry);
  uint32_t unsupported = 0;
  RealignedFrame realigned;
  while (program.Next() && program.start() < stop) {
    const UnwindRow row = realigned.Correct(ToUnwindRow(program.state()));
    if (GetCfaKind(row) == CfaKind::kUnsupported) ++unsupported;
    Push(row, program.start());
  }
  if (program.problem() != nullptr) {
    AddProblem(entry, program.problem());
    // None of its rows, rather than the last one before the fault for all that
    // is behind.
    table_.rows.resize(before);
    Push({}, entry.start);
  } else {
    table_.counts.unsupported_rows += unsupported;
  }
  if (table_.rows.size() > kMaxUnwindRows) {
    return Fail(ErrorCode::kLimit,
                "more than " + std::to_string(kMaxUnwindRows) + " rows");
  }
  return {};
}

void TableBuilder::FillGap(uint64_t start) {
  const bool is_padding = !table_.rows.empty() &&
                          start % kFunctionAlignment == 0 &&
                          start - described_to_ < kFunctionAlignment;
  if (start > described_to_ && !is_padding) Push({}, described_to_);
}

// `row` holds from `address` on.
void TableBuilder::Push(UnwindRow row, uint64_t address) {
  if (!table_.rows.empty()) {
    row.pc = table_.rows.back().pc;
    if (row == table_.rows.back()) return;
  }
  row.pc = static_cast<uint32_t>(address - table_.base.value);
  table_.rows.push_back(row);
}

void TableBuilder::AddProblem(const FrameEntry& entry, const char* problem) {
  ++table_.counts.bad_fdes;
  if (!table_.first_problem.empty()) return;
  table_.first_problem = DescribeProblem(section_, entry.offset, problem);
}

Status CheckMachine(const ElfImage& image) {
  if (image.elf_class() != ElfClass::k64) {
    return Fail(ErrorCode::kUnsupported,
                "a 32-bit file: its stacks are followed by frame pointers");
  }
  if (image.machine() != kMachine) {
    return Fail(ErrorCode::kUnsupported,
                "code of machine " + std::to_string(image.machine()) +
                    " instead of " + std::string(kMachineName));
  }
  return {};
}

}  // namespace

Result<UnwindTable> BuildSectionTable(const CallFrameSection& section,
                                      const CodeExtent& code) {
  UnwindTable table;
  static_cast<CodeExtent&>(table) = code;
  const auto built = TableBuilder(section, table).Build();
  if (!built) return Fail(built.error());
  return table;
}

Result<UnwindTable> BuildUnwindTable(const ByteSource& source,
                                     const ElfImage& image,
                                     const SectionTables& table_of) {
  const auto machine = CheckMachine(image);
  if (!machine) return Fail(machine.error());
  const auto code = FindCode(image);
  if (!code) return Fail(code.error());
  UnwindTable table;
  static_cast<CodeExtent&>(table) = *code;
  // Go keeps frame pointers, and switches stacks in ways that its .debug_frame
  // does not tell.
  const bool is_go = image.FindSection(".gopclntab") != nullptr;
  // .eh_frame first: exceptions need it, so that it is right and there.
  for (const auto read : {ReadEhFrame, ReadDebugFrame}) {
    if (is_go && read == ReadDebugFrame) break;
    const auto section = read(source, image);
    if (!section) return Fail(section.error());
    if (section->bytes.empty()) continue;
    auto built = table_of(*section, *code);
    if (!built) return built;
    built->counts.bad_fdes += table.counts.bad_fdes;
    if (!table.first_problem.empty()) {
      built->first_problem = std::move(table.first_problem);
    }
    table = std::move(*built);
    if (table.counts.fdes > 0) break;
  }
  if (table.rows.empty()) table.rows.emplace_back();
  AddKnownCode(source, image, table);
  return table;
}

const UnwindRow* FindUnwindRow(const UnwindTable& table, uint64_t pc) {
  if (pc >= table.size) return nullptr;
  // Without branches that could be mispredicted: the last row up to pc.
  const UnwindRow* row = table.rows.data();
  for (size_t left = table.rows.size(); left > 1;) {
    const size_t half = left / 2;
    row = row[half].pc <= pc ? row + half : row;
    left -= half;
  }
  return row;
}

}  // namespace ksym
