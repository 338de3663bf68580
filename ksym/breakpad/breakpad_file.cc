// SPDX-License-Identifier: Apache-2.0
#include "ksym/breakpad/breakpad_file.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

#include "ksym/base/text.h"
#include "ksym/breakpad/breakpad_inlines.h"

namespace ksym {
namespace {

// Lines are handed on when there are so many.
constexpr size_t kBatchLines = 1 << 16;
// INLINE lines of one function; hostile files could have any number.
constexpr uint64_t kMaxLevel = 4096;

// The next word of a line, and the spaces behind it.
std::string_view TakeWord(std::string_view& line) {
  const std::string_view word = TakeField(line, ' ');
  line = TrimLeft(line);
  return word;
}

template <std::unsigned_integral T>
bool Take(std::string_view& line, int base, T& value) {
  const auto number = ParseUnsigned<T>(TakeWord(line), base);
  if (number) value = *number;
  return number.has_value();
}

// A line number; some producers have negative ones where there is none.
bool TakeLine(std::string_view& line, uint32_t& value) {
  const std::string_view word = TakeWord(line);
  if (word.starts_with('-')) {
    value = 0;
    return ParseUnsigned(word.substr(1), 10).has_value();
  }
  const auto number = ParseUnsigned<uint32_t>(word, 10);
  value = number.value_or(0);
  return number.has_value();
}

// The range of an address and a size as they are read. Empty ones are no code.
std::optional<AddressRange> RangeOf(uint64_t start, uint64_t size) {
  if (size > std::numeric_limits<uint64_t>::max() - start) return std::nullopt;
  return AddressRange{start, start + size};
}

// The bytes of a text of hex digits; nothing if it is none.
std::optional<std::string> FromHex(std::string_view hex) {
  std::string bytes;
  if (hex.size() % 2 != 0) return std::nullopt;
  for (size_t i = 0; i < hex.size(); i += 2) {
    const auto byte = ParseUnsigned<uint8_t>(hex.substr(i, 2), 16);
    if (!byte) return std::nullopt;
    bytes += static_cast<char>(*byte);
  }
  return bytes;
}

// A debug identifier is a GUID, whose first three numbers are in big-endian,
// and an age. The GUID of an ELF file is the first 16 bytes of the build-id,
// taken as if these numbers were in little-endian.
std::string BuildIdOf(std::string_view debug_id) {
  constexpr size_t kGuidDigits = 32;
  auto bytes = FromHex(debug_id.substr(0, kGuidDigits));
  if (!bytes || debug_id.size() < kGuidDigits) return {};
  std::reverse(bytes->begin(), bytes->begin() + 4);
  std::reverse(bytes->begin() + 4, bytes->begin() + 6);
  std::reverse(bytes->begin() + 6, bytes->begin() + 8);
  return std::move(*bytes);
}

SourceFile SplitPath(std::string_view path) {
  const size_t slash = path.find_last_of("/\\");
  if (slash == std::string_view::npos) return {{}, std::string(path)};
  const size_t end = slash == 0 ? 1 : slash;  // the root keeps its slash
  return {std::string(path.substr(0, end)),
          std::string(path.substr(slash + 1))};
}

std::string_view TakeLineOf(std::string_view& text) {
  std::string_view line = TakeField(text, '\n');
  if (line.ends_with('\r')) line.remove_suffix(1);
  return line;
}

}  // namespace

// One pass over the functions of a file.
class BreakpadReader {
 public:
  using Add = std::function<void(const FunctionBatch&)>;

  BreakpadReader(BreakpadFile& file, const BreakpadReadOptions& options,
                 const Add& add)
      : file_(file), options_(options), add_(add) {}

  void Run() {
    batch_.files = file_.files_;
    std::string_view rest = file_.text_;
    for (uint64_t number = 1; !rest.empty(); ++number) {
      const std::string_view line = TakeLineOf(rest);
      if (!ReadLine(line)) file_.Malformed(line, number);
    }
    EndFunction();
    AddPublics();
    Flush();
  }

 private:
  struct Public {
    uint64_t address = 0;
    std::string_view name;
  };

  // False: malformed. What the index has is passed over.
  bool ReadLine(std::string_view line) {
    const size_t word_end = std::min(line.find(' '), line.size());
    const std::string_view word = line.substr(0, word_end);
    if (word.empty() || word == "FILE" || word == "INLINE_ORIGIN" ||
        word == "MODULE" || word == "INFO" || word == "STACK") {
      return true;
    }
    std::string_view rest = TrimLeft(line.substr(word_end));
    if (word == "FUNC") return ReadFunction(rest);
    if (word == "INLINE") return ReadInline(rest);
    if (word == "PUBLIC") return ReadPublic(rest);
    return ReadRow(line);
  }

  // "[m] ADDRESS SIZE PARAMETERS NAME"
  bool ReadFunction(std::string_view line) {
    EndFunction();
    if (line.starts_with("m ")) TakeWord(line);
    uint64_t start = 0;
    uint64_t size = 0;
    if (!Take(line, 16, start) || !Take(line, 16, size)) return false;
    TakeWord(line);
    const auto range = RangeOf(start, size);
    if (!range) return false;
    in_function_ = true;
    FunctionInfo& function = batch_.functions.emplace_back();
    function.name = line;
    function.range = *range;
    function.first_line = static_cast<uint32_t>(batch_.lines.size());
    function.first_inline = static_cast<uint32_t>(batch_.inlines.size());
    return true;
  }

  // "LEVEL LINE FILE ORIGIN (ADDRESS SIZE)+"
  bool ReadInline(std::string_view line) {
    BreakpadInline call;
    uint64_t file = 0;
    uint64_t origin = 0;
    if (!Take(line, 10, call.level) || !TakeLine(line, call.call_line) ||
        !Take(line, 10, file) || !Take(line, 10, origin) ||
        call.level > kMaxLevel) {
      return false;
    }
    while (!line.empty()) {
      uint64_t start = 0;
      uint64_t size = 0;
      if (!Take(line, 16, start) || !Take(line, 16, size)) return false;
      const auto range = RangeOf(start, size);
      if (!range) return false;
      if (size > 0) call.ranges.push_back(*range);
    }
    if (!in_function_) ++file_.losses_.misplaced_lines;
    if (!in_function_ || call.ranges.empty() ||
        options_.inlines == BreakpadReadOptions::Inlines::kSkip) {
      return true;
    }
    const auto name = file_.origins_.find(origin);
    if (name != file_.origins_.end()) call.name = name->second;
    call.call_file = file_.FileIndex(file);
    inlines_.push_back(std::move(call));
    return true;
  }

  // "ADDRESS SIZE LINE FILE"
  bool ReadRow(std::string_view line) {
    uint64_t start = 0;
    uint64_t size = 0;
    uint32_t number = 0;
    uint64_t file = 0;
    if (!Take(line, 16, start) || !Take(line, 16, size) ||
        !TakeLine(line, number) || !Take(line, 10, file)) {
      return false;
    }
    const auto range = RangeOf(start, size);
    if (!range) return false;
    if (!in_function_) ++file_.losses_.misplaced_lines;
    if (!in_function_ || size == 0 ||
        options_.lines == BreakpadReadOptions::Lines::kSkip) {
      return true;
    }
    rows_.push_back({*range, file_.FileIndex(file), number});
    return true;
  }

  // "[m] ADDRESS PARAMETERS NAME"
  bool ReadPublic(std::string_view line) {
    EndFunction();
    if (line.starts_with("m ")) TakeWord(line);
    Public symbol;
    if (!Take(line, 16, symbol.address)) return false;
    TakeWord(line);
    symbol.name = line;
    publics_.push_back(symbol);
    return true;
  }

  void EndFunction() {
    if (!std::exchange(in_function_, false)) return;
    FunctionInfo& function = batch_.functions.back();
    AppendRows(function.range);
    file_.losses_.inlined_calls += AppendBreakpadInlines(inlines_, batch_);
    rows_.clear();
    inlines_.clear();
    function.line_count =
        static_cast<uint32_t>(batch_.lines.size() - function.first_line);
    function.inline_count =
        static_cast<uint32_t>(batch_.inlines.size() - function.first_inline);
    if (function.range.start == function.range.end) {
      batch_.functions.pop_back();
      return;
    }
    covered_.push_back(function.range);
    if (batch_.lines.size() + batch_.inlines.size() > kBatchLines) Flush();
  }

  // Rows say where they end; a gap gets a row that knows nothing.
  void AppendRows(const AddressRange& function) {
    std::ranges::stable_sort(rows_, {},
                             [](const Row& row) { return row.range.start; });
    uint64_t end = function.start;
    for (const Row& row : rows_) {
      const AddressRange range = {std::max(row.range.start, end),
                                  std::min(row.range.end, function.end)};
      if (range.start >= range.end) continue;
      if (range.start > end) batch_.lines.push_back({end, 0, 0});
      batch_.lines.push_back({range.start, row.file, row.line});
      end = range.end;
    }
    if (!rows_.empty() && end < function.end) {
      batch_.lines.push_back({end, 0, 0});
    }
  }

  void AddPublics() {
    std::ranges::sort(covered_, {}, &AddressRange::start);
    std::ranges::stable_sort(publics_, {}, &Public::address);
    uint64_t covered_end = 0;  // of all functions that start before
    auto next = covered_.begin();
    for (size_t i = 0; i < publics_.size(); ++i) {
      const uint64_t start = publics_[i].address;
      for (; next != covered_.end() && next->start <= start; ++next) {
        covered_end = std::max(covered_end, next->end);
      }
      const bool is_same = i > 0 && publics_[i - 1].address == start;
      if (is_same || start < covered_end ||
          start == std::numeric_limits<uint64_t>::max()) {
        ++file_.losses_.publics;
        continue;
      }
      uint64_t end = start + 1;
      size_t other = i + 1;
      while (other < publics_.size() && publics_[other].address == start) {
        ++other;
      }
      const bool has_other = other < publics_.size();
      if (has_other) end = publics_[other].address;
      if (next != covered_.end() && (!has_other || next->start < end)) {
        end = next->start;
      }
      batch_.functions.push_back(
          {.name = publics_[i].name, .range = {start, end}});
    }
  }

  void Flush() {
    if (batch_.functions.empty()) return;
    add_(batch_);
    batch_.functions.clear();
    batch_.lines.clear();
    batch_.inlines.clear();
    batch_.ranges.clear();
  }

  struct Row {
    AddressRange range;
    uint32_t file = 0;
    uint32_t line = 0;
  };

  BreakpadFile& file_;
  BreakpadReadOptions options_;
  const Add& add_;
  FunctionBatch batch_;
  bool in_function_ = false;  // the batch's last one
  std::vector<Row> rows_;     // of that one
  std::vector<BreakpadInline> inlines_;
  std::vector<Public> publics_;
  std::vector<AddressRange> covered_;
};

void BreakpadFile::Malformed(std::string_view line, uint64_t number) {
  ++losses_.malformed_lines;
  if (!losses_.first.empty()) return;
  constexpr size_t kShown = 60;
  losses_.first = "line " + std::to_string(number) + ": '" +
                  std::string(line.substr(0, kShown)) + "'";
}

uint32_t BreakpadFile::FileIndex(uint64_t number) const {
  const auto found = file_numbers_.find(number);
  return found == file_numbers_.end() ? 0 : found->second;
}

// "MODULE OS ARCHITECTURE ID NAME"
Status BreakpadFile::ParseModule(std::string_view line) {
  TakeWord(line);
  TakeWord(line);
  TakeWord(line);
  const std::string_view id = TakeWord(line);
  if (id.empty() || id.find_first_not_of("0123456789abcdefABCDEF") !=
                        std::string_view::npos) {
    return Fail(ErrorCode::kCorrupt,
                "line 1: 'MODULE' needs a system, an architecture and a "
                "debug identifier in hexadecimal");
  }
  build_id_ = BuildIdOf(id);
  return {};
}

bool BreakpadFile::IndexLine(std::string_view line) {
  const std::string_view word = TakeWord(line);
  uint64_t number = 0;
  if (word == "FILE") {
    if (!Take(line, 10, number)) return false;
    file_numbers_[number] = static_cast<uint32_t>(files_.size());
    files_.push_back(SplitPath(line));
  } else if (word == "INLINE_ORIGIN") {
    if (!Take(line, 10, number)) return false;
    origins_[number] = line;
  } else if (word == "INFO" && TakeWord(line) == "CODE_ID") {
    auto bytes = FromHex(TakeWord(line));
    if (!bytes || bytes->empty()) return false;
    build_id_ = std::move(*bytes);
  }
  return true;
}

void BreakpadFile::Index() {
  std::string_view rest = text_;
  for (uint64_t number = 1; !rest.empty(); ++number) {
    const std::string_view line = TakeLineOf(rest);
    if (!line.starts_with('F') && !line.starts_with('I')) continue;
    if (!IndexLine(line)) Malformed(line, number);
  }
  index_losses_ = std::exchange(losses_, {});
}

Result<BreakpadFile> BreakpadFile::Parse(std::string_view text) {
  if (!IsBreakpad(text)) {
    return Fail(ErrorCode::kUnsupported,
                "not a Breakpad symbol file: line 1 is not 'MODULE ...'");
  }
  BreakpadFile file(text);
  std::string_view rest = text;
  auto module = file.ParseModule(TakeLineOf(rest));
  if (!module) return Fail(std::move(module.error()));
  file.Index();
  return file;
}

void BreakpadFile::ForEachBatch(
    const BreakpadReadOptions& options,
    const std::function<void(const FunctionBatch&)>& add) {
  losses_ = index_losses_;
  BreakpadReader(*this, options, add).Run();
}

}  // namespace ksym
