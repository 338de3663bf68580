// SPDX-License-Identifier: Apache-2.0
#include "ksym/unwind/x86_64/undescribed_code.h"

#include <elf.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <utility>

#include "ksym/unwind/frame_state.h"
#include "ksym/unwind/x86_64/code_scan.h"
#include "ksym/unwind/x86_64/registers.h"

namespace ksym {
namespace {

constexpr int32_t kWord = 8;

// General registers' DWARF numbers by those in instructions.
constexpr std::array<uint8_t, 16> kDwarfNumbers = {
    0, 2, 1, 3, 7, 6, 4, 5, 8, 9, 10, 11, 12, 13, 14, 15};

RegisterRule RuleOf(int32_t saved) {
  if (saved == FrameFacts::kInRegister) return {};
  if (saved == FrameFacts::kUnknown) return {RegisterRule::Kind::kUndefined, 0};
  return {RegisterRule::Kind::kAtCfa, -saved};
}

CfaRule CfaOf(const FrameFacts& facts) {
  // "push %rbp; mov %rsp, %rbp": says more than RSP, which callees may move.
  constexpr int32_t kFramePointer = 2 * kWord;
  const bool is_frame_pointer =
      facts.rbp == kFramePointer && facts.rbp_saved == kFramePointer;
  const auto by = [](uint64_t number, int32_t offset) {
    return CfaRule{CfaRule::Kind::kRegister, static_cast<uint8_t>(number),
                   offset, 0};
  };
  if (is_frame_pointer) return by(kDwarfFramePointer, facts.rbp);
  if (facts.rsp != FrameFacts::kUnknown)
    return by(kDwarfStackPointer, facts.rsp);
  if (facts.rbp != FrameFacts::kUnknown)
    return by(kDwarfFramePointer, facts.rbp);
  if (facts.IsKept()) {
    return {CfaRule::Kind::kDeref, kDwarfStackPointer,
            facts.aligned - facts.kept_at, facts.kept};
  }
  return by(kDwarfNumbers[facts.copy_register & 15], facts.copy);
}

UnwindRow RowOf(const FrameFacts& facts) {
  FrameState state;
  state.cfa = CfaOf(facts);
  state.frame_pointer = RuleOf(facts.rbp_saved);
  state.extra = RuleOf(facts.rbx_saved);
  state.return_address = {RegisterRule::Kind::kAtCfa, -kWord};
  return ToUnwindRow(state);
}

// The one that has a byte, or null.
const CodeRange* FindGap(std::span<const CodeRange> gaps, uint64_t at) {
  const auto gap = std::ranges::partition_point(
      gaps, [&](const CodeRange& g) { return g.end <= at; });
  return gap != gaps.end() && gap->start <= at ? &*gap : nullptr;
}

// Where the file's tables say that functions are, in the gaps.
class EntryFinder {
 public:
  EntryFinder(const ByteSource& source, const UnwindTable& table,
              std::span<const CodeRange> gaps)
      : source_(source), table_(table), gaps_(gaps) {}

  void ReadSymbols(const ElfSection& section) {
    constexpr size_t kBlock = 2048;
    const uint64_t count =
        std::min(section.size / sizeof(Elf64_Sym), kMaxScannedSymbols);
    std::vector<Elf64_Sym> block(std::min<uint64_t>(count, kBlock));
    for (uint64_t at = 0; at < count; at += kBlock) {
      const auto part =
          std::span(block).first(std::min<uint64_t>(count - at, kBlock));
      if (!source_.ReadAt(section.file_offset + at * sizeof(Elf64_Sym),
                          std::as_writable_bytes(part))) {
        return;
      }
      for (const Elf64_Sym& symbol : part) Add(symbol);
    }
  }

  void Add(uint64_t place) {
    if (FindGap(gaps_, place) != nullptr)
      entries_.push_back(static_cast<uint32_t>(place));
  }

  std::vector<uint32_t> Take() { return std::move(entries_); }

 private:
  void Add(const Elf64_Sym& symbol) {
    const auto type = ELF64_ST_TYPE(symbol.st_info);
    // Local symbols are also of parts that compilers put elsewhere.
    if ((type != STT_FUNC && type != STT_GNU_IFUNC) ||
        ELF64_ST_BIND(symbol.st_info) == STB_LOCAL ||
        symbol.st_shndx == SHN_UNDEF || symbol.st_value < table_.base.value) {
      return;
    }
    Add(symbol.st_value - table_.base.value);
  }

  const ByteSource& source_;
  const UnwindTable& table_;
  std::span<const CodeRange> gaps_;
  std::vector<uint32_t> entries_;
};

// What a jump to code with a row expects.
CodeElsewhere Expect(const UnwindTable& table, uint32_t at) {
  const UnwindRow* row = FindUnwindRow(table, at);
  if (row == nullptr) return {};
  if (GetCfaKind(*row) == CfaKind::kPlt) return {true, kWord};
  if (GetCfaKind(*row) != CfaKind::kStackPointer) return {.is_code = true};
  return {true, kWord * row->cfa_offset};
}

// Cuts a part out of the gap that has it.
void Remove(const CodeRange& part, std::vector<CodeGap>& gaps) {
  const auto gap = std::ranges::partition_point(
      gaps, [&](const CodeGap& g) { return g.end <= part.start; });
  const CodeGap before = {gap->start, static_cast<uint32_t>(part.start)};
  gap->start = static_cast<uint32_t>(part.end);
  const auto rest = gap->start < gap->end ? gap : gaps.erase(gap);
  if (before.start < before.end) gaps.insert(rest, before);
}

// The way from the kernel or the dynamic linker into the program, up to its
// first call: nothing called it.
void AddStart(uint64_t start, const CodeRange& gap, CodeToScan& code,
              std::vector<RowPatch>& patches) {
  constexpr size_t kMaxStartBytes = 64;
  std::array<std::byte, kMaxStartBytes> storage = {};
  const auto bytes = std::span(storage).first(
      std::min<uint64_t>(gap.end - start, storage.size()));
  if (!code.read(static_cast<uint32_t>(start), bytes)) return;
  Instruction i;
  size_t at = 0;
  do {
    i = DecodeInstruction(bytes.subspan(at));
    at += i.size;
  } while (i.size > 0 && i.flow == CodeFlow::kNext);
  if (i.flow == CodeFlow::kCall) {
    code.entries.push_back(static_cast<uint32_t>(
        start + at + static_cast<uint64_t>(int64_t{i.target})));
  } else if (i.flow != CodeFlow::kCallSlot) {
    return;
  }
  patches.push_back({start, start + at, {0, 0, 0, MakeRule(CfaKind::kEnd)}});
  Remove({start, start + at}, code.gaps);
}

// Ranges as rows; equal neighbours are one. What is between two functions goes
// with the first, as between those that are described.
void AddRows(const std::vector<ScannedRange>& ranges,
             std::span<const CodeRange> gaps, std::vector<RowPatch>& patches) {
  constexpr uint64_t kFunctionAlignment = 16;
  const size_t first = patches.size();
  for (const ScannedRange& range : ranges) {
    const UnwindRow row = RowOf(range.facts);
    if (GetCfaKind(row) == CfaKind::kUnsupported) continue;
    if (patches.size() > first) {
      RowPatch& last = patches.back();
      const bool is_padding =
          range.start % kFunctionAlignment == 0 &&
          range.start - last.end < kFunctionAlignment &&
          FindGap(gaps, last.end - 1) == FindGap(gaps, range.start);
      if (is_padding) last.end = range.start;
      if (last.end == range.start && last.row == row) {
        last.end = range.end;
        continue;
      }
    }
    patches.push_back({range.start, range.end, row});
  }
}

// e_entry as the table counts, if it is in a gap.
std::optional<uint64_t> FindStart(const ByteSource& source,
                                  const UnwindTable& table) {
  Elf64_Ehdr header = {};
  if (!source.ReadAt(0, std::as_writable_bytes(std::span(&header, 1))) ||
      header.e_entry < table.base.value) {
    return std::nullopt;
  }
  return header.e_entry - table.base.value;
}

}  // namespace

CodeToScan FindCodeToScan(const ByteSource& source, const ElfImage& image,
                          const UnwindTable& table,
                          std::span<const CodeRange> gaps) {
  CodeToScan code;
  const ElfSection* text = image.FindSection(".text");
  if (text == nullptr || text->address < table.base) return code;
  code.read = [&source, at_text = text->address - table.base,
               offset = text->file_offset](uint32_t at,
                                           std::span<std::byte> out) {
    return source.ReadAt(offset + (at - at_text), out).has_value();
  };
  code.elsewhere = [&table](uint32_t at) { return Expect(table, at); };
  uint64_t bytes = 0;
  for (const CodeRange& gap : gaps) {
    bytes += gap.end - gap.start;
    code.gaps.push_back(
        {static_cast<uint32_t>(gap.start), static_cast<uint32_t>(gap.end)});
  }
  if (bytes < kMinNamedGapBytes) return code;
  EntryFinder entries(source, table, gaps);
  for (const ElfSection& section : image.sections()) {
    if (section.type == SHT_DYNSYM || section.type == SHT_SYMTAB) {
      entries.ReadSymbols(section);
    }
  }
  code.entries = entries.Take();
  return code;
}

std::vector<RowPatch> FindUndescribedRows(const ByteSource& source,
                                          const ElfImage& image,
                                          const UnwindTable& table,
                                          std::span<const CodeRange> gaps) {
  std::vector<RowPatch> patches;
  CodeToScan code = FindCodeToScan(source, image, table, gaps);
  if (code.gaps.empty()) return patches;
  if (const auto start = FindStart(source, table)) {
    if (const CodeRange* gap = FindGap(gaps, *start)) {
      AddStart(*start, *gap, code, patches);
    }
  }
  AddRows(ScanCode(std::move(code)), gaps, patches);
  return patches;
}

}  // namespace ksym
