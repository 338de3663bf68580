// SPDX-License-Identifier: Apache-2.0
#include "ksym/unwind/x86_64/known_code.h"

#include <elf.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <iterator>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "ksym/unwind/row_patch.h"
#include "ksym/unwind/x86_64/undescribed_code.h"

namespace ksym {
namespace {

using std::string_view_literals::operator""sv;

// "mov $15, %rax; syscall": rt_sigreturn(2).
constexpr std::string_view kSignalReturn =
    "\x48\xc7\xc0\x0f\x00\x00\x00\x0f\x05"sv;
// A file has one; more are data that looks like it.
constexpr size_t kMaxSignalReturns = 16;
constexpr size_t kBlockBytes = size_t{64} << 10;
constexpr uint64_t kStubBytes = 16;

// The part of an executable section that the table covers.
std::optional<CodeRange> RangeOf(const ElfSection* section,
                                 const UnwindTable& table) {
  if (section == nullptr || (section->flags & SHF_EXECINSTR) == 0 ||
      section->type == SHT_NOBITS || section->address < table.base) {
    return std::nullopt;
  }
  const uint64_t start = section->address - table.base;
  if (start >= table.size || section->size > table.size - start) {
    return std::nullopt;
  }
  return CodeRange{start, start + section->size};
}

// Calls `visit` with each part of `range` that has no rows, in order.
template <typename Visit>
void ForEachGap(const UnwindTable& table, CodeRange range, const Visit& visit) {
  auto row = std::upper_bound(
      table.rows.begin(), table.rows.end(), range.start,
      [](uint64_t pc, const UnwindRow& r) { return pc < r.pc; });
  --row;  // the first is at 0
  for (; row != table.rows.end() && row->pc < range.end; ++row) {
    if (GetCfaKind(*row) != CfaKind::kNoInfo) continue;
    const auto next = row + 1;
    const uint64_t end = next == table.rows.end() ? table.size : next->pc;
    const CodeRange gap = {std::max<uint64_t>(row->pc, range.start),
                           std::min(end, range.end)};
    if (gap.start < gap.end) visit(gap);
  }
}

bool IsGap(const UnwindTable& table, CodeRange range) {
  bool is_gap = false;
  ForEachGap(table, range, [&](CodeRange gap) {
    is_gap = gap.start == range.start && gap.end == range.end;
  });
  return is_gap;
}

// Where the push of a stub ends: "jmp *slot; push index; jmp first", or
// "endbr64; push index; jmp first".
std::optional<int16_t> PushEnd(std::string_view stub) {
  if (stub.starts_with("\xff\x25"sv) && stub.substr(6, 1) == "\x68"sv) {
    return int16_t{11};
  }
  if (stub.starts_with("\xf3\x0f\x1e\xfa\x68"sv)) return int16_t{9};
  return std::nullopt;
}

// How many words are on the stack between here and the caller's frame.
UnwindRow RowOfWords(int16_t words) {
  return {0, words, 0, MakeRule(CfaKind::kStackPointer)};
}

// mold's: the first one, "endbr64; push %r11; push word; jmp *resolver", has
// the place of two, and the others jump with their index in R11.
bool AddMoldStubs(std::string_view code, CodeRange range,
                  std::vector<RowPatch>& patches) {
  constexpr std::string_view kFirst = "\xf3\x0f\x1e\xfa\x41\x53\xff\x35"sv;
  constexpr uint64_t kFirstPush = 6;
  constexpr uint64_t kSecondPush = 12;
  constexpr uint64_t kFirstBytes = 2 * kStubBytes;
  if (!code.starts_with(kFirst)) return false;
  const uint64_t start = range.start;
  patches.push_back({start, start + kFirstPush, RowOfWords(1)});
  patches.push_back({start + kFirstPush, start + kSecondPush, RowOfWords(2)});
  patches.push_back({start + kSecondPush, start + kFirstBytes, RowOfWords(3)});
  if (start + kFirstBytes < range.end) {
    patches.push_back({start + kFirstBytes, range.end, RowOfWords(1)});
  }
  return true;
}

void AddStubs(const ByteSource& source, const ElfImage& image,
              const UnwindTable& table, std::vector<RowPatch>& patches) {
  const ElfSection* section = image.FindSection(".plt");
  const auto range = RangeOf(section, table);
  std::array<char, 2 * kStubBytes> bytes = {};
  if (!range || range->end - range->start < bytes.size() ||
      !IsGap(table, *range) ||
      !source.ReadAt(section->file_offset,
                     std::as_writable_bytes(std::span(bytes)))) {
    return;
  }
  const std::string_view code(bytes.data(), bytes.size());
  if (AddMoldStubs(code, *range, patches)) return;
  const uint64_t start = range->start;
  // A static program binds nothing later: "jmp *slot; xchg %ax, %ax".
  constexpr std::string_view kJump = "\xff\x25"sv;
  constexpr std::string_view kFill = "\x66\x90"sv;
  if (code.starts_with(kJump) && code.substr(6, 2) == kFill &&
      code.substr(8, 2) == kJump && code.substr(14, 2) == kFill) {
    patches.push_back({start, range->end, RowOfWords(1)});
    return;
  }
  const auto push_end = PushEnd(code.substr(kStubBytes));
  // The first stub, "push word; jmp *resolver", is where the others jump to.
  constexpr uint64_t kFirstPushBytes = 6;
  if (!push_end || !code.starts_with("\xff\x35"sv)) return;
  patches.push_back({start, start + kFirstPushBytes, RowOfWords(2)});
  patches.push_back(
      {start + kFirstPushBytes, start + kStubBytes, RowOfWords(3)});
  patches.push_back({start + kStubBytes,
                     range->end,
                     {0, *push_end, 0, MakeRule(CfaKind::kPlt)}});
}

// Stubs that only jump.
void AddPlainStubs(const ElfImage& image, const UnwindTable& table,
                   std::vector<RowPatch>& patches) {
  for (const std::string_view name : {".plt.sec"sv, ".plt.got"sv}) {
    const auto range = RangeOf(image.FindSection(name), table);
    if (range && range->start < range->end && IsGap(table, *range)) {
      patches.push_back({range->start, range->end, RowOfWords(1)});
    }
  }
}

// Instructions that begin so and are so long: what the C library's crti.o and
// those who add to its functions write between their first and last lines.
struct InitInstruction {
  std::string_view opcode;
  size_t bytes;
};
constexpr std::array<InitInstruction, 9> kInitInstructions = {{
    {"\x48\x8b\x05"sv, 7},  // mov slot(%rip), %rax
    {"\x48\xc7\xc0"sv, 7},  // mov $constant, %rax
    {"\x48\x85\xc0"sv, 3},  // test %rax, %rax
    {"\x74\x02"sv, 2},      // je over the next
    {"\xff\xd0"sv, 2},      // call *%rax
    {"\xe8"sv, 5},          // call function
    {"\x67\xe8"sv, 6},      // the same, where it was a call *slot
    {"\xff\x15"sv, 6},      // call *slot(%rip)
    {"\x90"sv, 1},
}};

// How many bytes of such instructions `code` begins with.
size_t InitBytes(std::string_view code) {
  size_t at = 0;
  while (true) {
    const auto instruction =
        std::ranges::find_if(kInitInstructions, [&](const InitInstruction& i) {
          return code.substr(at).starts_with(i.opcode);
        });
    if (instruction == kInitInstructions.end()) return at;
    at += instruction->bytes;
    if (at >= code.size()) return code.size();
  }
}

// The one function of .init or .fini, which object files have parts of: "sub
// $8, %rsp; calls; add $8, %rsp; ret".
void AddInitFunction(const ByteSource& source, const ElfSection& section,
                     CodeRange range, std::vector<RowPatch>& patches) {
  constexpr size_t kMaxBytes = 256;
  constexpr std::string_view kLandingPad = "\xf3\x0f\x1e\xfa"sv;  // endbr64
  constexpr std::string_view kFirst = "\x48\x83\xec\x08"sv;
  constexpr std::string_view kLast = "\x48\x83\xc4\x08\xc3"sv;
  std::array<char, kMaxBytes> bytes = {};
  const auto read =
      std::span(bytes).first(std::min(range.end - range.start, kMaxBytes));
  if (!source.ReadAt(section.file_offset, std::as_writable_bytes(read))) return;
  const std::string_view code(read.data(), read.size());
  size_t body = code.starts_with(kLandingPad) ? kLandingPad.size() : 0;
  if (!code.substr(body).starts_with(kFirst)) return;
  body += kFirst.size();
  const size_t last = body + InitBytes(code.substr(body));
  if (!code.substr(last).starts_with(kLast)) return;
  const size_t end = last + kLast.size();
  const auto add = [&](size_t from, size_t to, int16_t words) {
    patches.push_back(
        {range.start + from, range.start + to, RowOfWords(words)});
  };
  add(0, body, 1);
  add(body, end - 1, 2);
  add(end - 1, end, 1);
}

void AddInitFunctions(const ByteSource& source, const ElfImage& image,
                      const UnwindTable& table,
                      std::vector<RowPatch>& patches) {
  for (const std::string_view name : {".init"sv, ".fini"sv}) {
    const ElfSection* section = image.FindSection(name);
    const auto range = RangeOf(section, table);
    if (range && range->start < range->end && IsGap(table, *range)) {
      AddInitFunction(source, *section, *range, patches);
    }
  }
}

// "syscall; test %rax, %rax; jl error; jz thread_start; ret": how many bytes of
// it `code` ends with.
size_t CloneBytes(std::string_view code) {
  constexpr std::string_view kCall = "\x0f\x05\x48\x85\xc0"sv;
  // With a displacement of one byte, and of four.
  constexpr std::array kJumps = {
      std::pair("\x7c"sv, "\x0f\x8c"sv),  // jl
      std::pair("\x74"sv, "\x0f\x84"sv),  // jz
  };
  const size_t call = code.rfind(kCall);
  if (call == std::string_view::npos) return 0;
  std::string_view rest = code.substr(call + kCall.size());
  for (const auto& [with_byte, with_four] : kJumps) {
    const bool is_short = rest.starts_with(with_byte);
    if (!is_short && !rest.starts_with(with_four)) return 0;
    const size_t bytes = is_short ? with_byte.size() + 1 : with_four.size() + 4;
    rest = rest.substr(std::min(bytes, rest.size()));
  }
  return rest == "\xc3"sv ? code.size() - call : 0;
}

// What follows the system call in glibc's clone() and clone3() is the code of
// two stacks, and not described up to where the new thread begins, which is
// described as outermost. Where that begins at a multiple of 16 what comes
// before it was taken for padding, and has the row of the code before it.
// True when there are any.
bool AddClones(const ByteSource& source, const ElfImage& image,
               const UnwindTable& table, std::vector<RowPatch>& patches) {
  constexpr uint64_t kMaxBytes = 5 + 6 + 6 + 1;
  constexpr size_t kMaxTried = 64;
  const ElfSection* section = image.FindSection(".text");
  const auto range = RangeOf(section, table);
  if (!range) return false;
  std::array<char, kMaxBytes> bytes = {};
  size_t tried = 0;
  bool has_any = false;
  for (auto row = table.rows.begin(); row != table.rows.end(); ++row) {
    if (GetCfaKind(*row) != CfaKind::kEnd || row == table.rows.begin() ||
        row->pc < range->start + kMaxBytes || row->pc > range->end) {
      continue;
    }
    const uint64_t from = row->pc - kMaxBytes - range->start;
    if (++tried > kMaxTried ||
        !source.ReadAt(section->file_offset + from,
                       std::as_writable_bytes(std::span(bytes)))) {
      break;
    }
    const size_t found = CloneBytes({bytes.data(), bytes.size()});
    if (found == 0 || row->pc - found < std::prev(row)->pc) continue;
    patches.push_back(
        {row->pc - found, row->pc, {0, 1, 0, MakeRule(CfaKind::kClone)}});
    has_any = true;
  }
  return has_any;
}

// Reads code in blocks that overlap, so that what lies across two is found.
class BlockReader {
 public:
  BlockReader(const ByteSource& source, FileOffset base)
      : source_(source), base_(base) {}

  // Calls `visit` with where a block begins and its bytes, until it says false.
  template <typename Visit>
  void Read(CodeRange range, uint64_t overlap, const Visit& visit) {
    for (uint64_t at = range.start; at < range.end;
         at += kBlockBytes - overlap) {
      if (scanned_ >= kMaxScannedBytes) return;
      const size_t size = std::min<uint64_t>(kBlockBytes, range.end - at);
      const auto bytes = std::as_writable_bytes(std::span(block_)).first(size);
      if (!source_.ReadAt(base_.value + at, bytes)) return;
      scanned_ += size;
      if (!visit(at, std::string_view(block_.data(), size))) return;
    }
  }

 private:
  const ByteSource& source_;
  FileOffset base_;  // of the table's base
  std::vector<char> block_ = std::vector<char>(kBlockBytes);
  uint64_t scanned_ = 0;
};

// The code of .text and how it is read.
struct Text {
  CodeRange range;
  BlockReader reader;
};

std::optional<Text> FindText(const ByteSource& source, const ElfImage& image,
                             const UnwindTable& table) {
  const ElfSection* section = image.FindSection(".text");
  const auto range = RangeOf(section, table);
  if (!range || section->file_offset < range->start) return std::nullopt;
  return Text{*range,
              BlockReader(source, {section->file_offset - range->start})};
}

// In the code that nothing describes.
void AddSignalReturns(Text& text, const std::vector<CodeRange>& gaps,
                      std::vector<RowPatch>& patches) {
  size_t found = 0;
  for (const CodeRange& gap : gaps) {
    const auto scan = [&](uint64_t start, std::string_view bytes) {
      for (size_t at = bytes.find(kSignalReturn); at != std::string_view::npos;
           at = bytes.find(kSignalReturn, at + 1)) {
        if (++found > kMaxSignalReturns) return false;
        // Handlers return to the first byte, and are looked up one before it.
        const uint64_t first = std::max(gap.start, start + at - 1);
        patches.push_back({first,
                           start + at + kSignalReturn.size(),
                           {0, 0, 0, MakeRule(CfaKind::kSignal)}});
      }
      return true;
    };
    if (found <= kMaxSignalReturns) {
      text.reader.Read(gap, kSignalReturn.size() - 1, scan);
    }
  }
}

// "mov %rbx, %rsp; mov (%rsp), %rdi; test %rdi, %rdi; je over a call; ..;
// hlt": glibc's __start_context, to whose first byte the function of
// makecontext() returns. What it describes is a caller above it, where that
// function's arguments are. It is a part of what has clone() as well.
void AddContextStarts(Text& text, std::vector<RowPatch>& patches) {
  constexpr std::string_view kFirst = "\x48\x89"sv;
  // From the third byte on, as the first ones are everywhere.
  constexpr std::string_view kRest = "\xdc\x48\x8b\x3c\x24\x48\x85\xff\x74"sv;
  constexpr size_t kBytes = 26;
  constexpr size_t kMaxFound = 16;
  size_t found = 0;
  text.reader.Read(
      text.range, kBytes - 1, [&](uint64_t start, std::string_view bytes) {
        for (size_t at = bytes.find(kRest, kFirst.size());
             at != std::string_view::npos; at = bytes.find(kRest, at + 1)) {
          const size_t first = at - kFirst.size();
          const std::string_view code = bytes.substr(first);
          if (!code.starts_with(kFirst) ||
              !code.substr(0, kBytes).ends_with("\xf4"sv) ||
              code.size() < kBytes || start + first <= text.range.start) {
            continue;
          }
          if (++found > kMaxFound) return false;
          // Looked up one byte before it.
          patches.push_back({start + first - 1,
                             start + first + kBytes,
                             {0, 0, 0, MakeRule(CfaKind::kEnd)}});
        }
        return true;
      });
}

// Appends a row unless it says what the last one does.
void Append(UnwindRow row, uint64_t pc, std::vector<UnwindRow>& rows) {
  row.pc = static_cast<uint32_t>(pc);
  if (!rows.empty()) {
    UnwindRow last = rows.back();
    last.pc = row.pc;
    if (last == row) return;
  }
  rows.push_back(row);
}

// The parts of gaps that have functions and no patch.
std::vector<CodeRange> Without(const std::vector<CodeRange>& gaps,
                               std::vector<RowPatch>& patches) {
  std::ranges::sort(patches, {}, &RowPatch::start);
  std::vector<CodeRange> left;
  auto patch = patches.begin();
  for (const CodeRange& gap : gaps) {
    uint64_t at = gap.start;
    const auto add = [&](uint64_t end) {
      if (end >= at + kMinGapBytes) left.push_back({at, end});
    };
    for (; patch != patches.end() && patch->start < gap.end; ++patch) {
      if (patch->end <= at) continue;
      add(patch->start);
      at = patch->end;
    }
    add(gap.end);
  }
  return left;
}

// A patch wins over all rows that it touches.
void Apply(std::vector<RowPatch> patches, UnwindTable& table) {
  std::sort(
      patches.begin(), patches.end(),
      [](const RowPatch& a, const RowPatch& b) { return a.start < b.start; });
  std::vector<UnwindRow> rows;
  rows.reserve(table.rows.size() + 2 * patches.size());
  auto patch = patches.begin();
  uint64_t at = 0;
  for (size_t i = 0; i < table.rows.size(); ++i) {
    const uint64_t end =
        i + 1 < table.rows.size() ? table.rows[i + 1].pc : table.size;
    for (; patch != patches.end() && patch->start < end; ++patch) {
      if (patch->start < at) continue;  // overlaps the one before
      if (patch->start > at) Append(table.rows[i], at, rows);
      Append(patch->row, patch->start, rows);
      at = patch->end;
    }
    if (at >= end) continue;
    Append(table.rows[i], at, rows);
    at = end;
  }
  table.rows = std::move(rows);
}

}  // namespace

void AddKnownCode(const ByteSource& source, const ElfImage& image,
                  UnwindTable& table) {
  std::vector<RowPatch> patches;
  AddStubs(source, image, table, patches);
  AddPlainStubs(image, table, patches);
  AddInitFunctions(source, image, table, patches);
  if (auto text = FindText(source, image, table)) {
    std::vector<CodeRange> gaps;
    ForEachGap(table, text->range, [&](CodeRange gap) { gaps.push_back(gap); });
    AddSignalReturns(*text, gaps, patches);
    if (AddClones(source, image, table, patches)) {
      AddContextStarts(*text, patches);
    }
    // Go's has frame pointers, and stacks that are switched.
    if (image.FindSection(".gopclntab") == nullptr) {
      gaps = Without(gaps, patches);
      if (!gaps.empty()) {
        const auto found = FindUndescribedRows(source, image, table, gaps);
        patches.insert(patches.end(), found.begin(), found.end());
      }
    }
  }
  if (!patches.empty()) Apply(std::move(patches), table);
}

}  // namespace ksym
