// SPDX-License-Identifier: Apache-2.0
// VerifyGsym: what a GSYM file answers against the debug data themselves.

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "gen/gsym_generate.h"
#include "gen/gsym_inspect.h"
#include "gen/unit_threads.h"
#include "ksym/base/file.h"
#include "ksym/base/printable.h"
#include "ksym/gsym/gsym_lookup.h"
#include "ksym/gsym_convert.h"

namespace gen {
namespace {

using Writer = std::function<void(std::string_view)>;

std::string Place(std::string_view directory, std::string_view base,
                  uint32_t line) {
  const std::string_view slash =
      directory.empty() || directory.ends_with('/') ? "" : "/";
  return base.empty() && directory.empty()
             ? std::string()
             : fmt::format(" {}{}{}:{}", directory, slash, base, line);
}

class Verifier {
 public:
  Verifier(const ksym::GsymFile& file, const Writer& write)
      : file_(file), write_(write) {}

  void Check(const ksym::FunctionBatch& batch) {
    for (const ksym::FunctionInfo& function : batch.functions) {
      const bool is_new =
          seen_.emplace(function.range.start, function.range.end).second;
      // The file has one of the functions with the same code.
      if (is_new) CheckFunction(batch, function);
    }
  }

  bool PrintSummary() const {
    write_(fmt::format("{} functions, {} addresses, {} differences\n",
                       seen_.size(), checked_, differences_));
    return differences_ == 0;
  }

 private:
  void CheckFunction(const ksym::FunctionBatch& batch,
                     const ksym::FunctionInfo& function) {
    std::vector<uint64_t> addresses = {function.range.start,
                                       function.range.end - 1};
    for (uint32_t i = 0; i < function.line_count; ++i) {
      addresses.push_back(batch.lines[function.first_line + i].address);
    }
    for (uint32_t i = 0; i < function.inline_count; ++i) {
      const auto& call = batch.inlines[function.first_inline + i];
      for (uint32_t k = 0; k < call.range_count; ++k) {
        addresses.push_back(batch.ranges[call.first_range + k].start);
        addresses.push_back(batch.ranges[call.first_range + k].end - 1);
      }
    }
    std::ranges::sort(addresses);
    const auto rest = std::ranges::unique(addresses);
    addresses.erase(rest.begin(), rest.end());
    for (const uint64_t address : addresses) {
      ++checked_;
      const std::string expected = Expected(batch, function, address);
      const std::string found = Found(address);
      if (expected != found) Report(address, expected, found);
    }
  }

  // One line per frame, straight from the batch: the row before the address,
  // then the calls that contain it, first come, from the outermost inwards.
  static std::string Expected(const ksym::FunctionBatch& batch,
                              const ksym::FunctionInfo& function,
                              uint64_t address) {
    const ksym::LineRow* row = nullptr;
    for (uint32_t i = 0; i < function.line_count; ++i) {
      const ksym::LineRow& next = batch.lines[function.first_line + i];
      if (next.address > address) break;
      row = &next;
    }
    if (row == nullptr) return std::string(function.name) + "\n";
    std::vector<const ksym::InlinedCall*> chain;
    for (uint32_t i = 0; i < function.inline_count; ++i) {
      const auto& call = batch.inlines[function.first_inline + i];
      if (call.depth != chain.size() + 1) {
        if (call.depth <= chain.size()) break;  // the chain's subtree is over
        continue;
      }
      for (uint32_t k = 0; k < call.range_count; ++k) {
        if (!batch.ranges[call.first_range + k].Contains(address)) continue;
        chain.push_back(&call);
        break;
      }
    }
    return Frames(batch, function, *row, chain);
  }

  static std::string Frames(
      const ksym::FunctionBatch& batch, const ksym::FunctionInfo& function,
      const ksym::LineRow& row,
      const std::vector<const ksym::InlinedCall*>& chain) {
    std::string text;
    uint32_t file_index = row.file;
    uint32_t line = row.line;
    const auto place = [&] {
      const ksym::SourceFile& file = batch.files[file_index];
      return Place(file.directory, file.base, line);
    };
    for (size_t i = chain.size(); i > 0; --i) {
      const ksym::InlinedCall& call = *chain[i - 1];
      text += std::string(call.name) + place() + "\n";
      file_index = call.call_file;
      line = call.call_line;
    }
    return text + std::string(function.name) + place() + "\n";
  }

  std::string Found(uint64_t address) {
    const auto found = ksym::LookupGsym(file_, {address}, answer_);
    if (!found) return found.error().message() + "\n";
    if (!*found) return "no function\n";
    std::string text;
    for (const ksym::GsymFrame& frame : answer_.frames) {
      text += std::string(frame.function) +
              Place(frame.directory, frame.file, frame.line) + "\n";
    }
    return text;
  }

  void Report(uint64_t address, std::string_view expected,
              std::string_view found) {
    if (differences_++ >= kMaxShownDifferences) return;
    std::string text = fmt::format("{:#x}\n", address);
    const auto add_lines = [&text](std::string_view sign,
                                   std::string_view lines) {
      while (!lines.empty()) {
        const size_t end = lines.find('\n');
        text += sign;
        ksym::AppendPrintable(lines.substr(0, end), text);
        text += '\n';
        lines.remove_prefix(end + 1);
      }
    };
    add_lines("  debug data: ", expected);
    add_lines("  file:       ", found);
    write_(text);
  }

  const ksym::GsymFile& file_;
  const Writer& write_;
  ksym::GsymAnswer answer_;
  std::set<std::pair<uint64_t, uint64_t>> seen_;
  uint64_t checked_ = 0;
  uint64_t differences_ = 0;
};

ksym::Status OtherProgram(const GsymOptions& options) {
  return ksym::Fail(ksym::ErrorCode::kInvalid,
                    options.input + " was not made of " + options.program +
                        ": their build-ids differ");
}

using IsSame = std::function<bool(const std::string& build_id)>;
using AddBatch = std::function<void(const ksym::FunctionBatch&)>;

ksym::Status ForEachBreakpadFunction(const GsymOptions& options,
                                     const IsSame& is_same,
                                     const AddBatch& add) {
  const auto text = ksym::ReadFile(options.program, kMaxBreakpadBytes);
  if (!text) return ksym::Fail(text.error());
  auto symbols = ksym::BreakpadFile::Parse(*text);
  if (!symbols) {
    return ksym::Fail(std::move(symbols.error()).WithContext(options.program));
  }
  if (!is_same(symbols->build_id())) return OtherProgram(options);
  symbols->ForEachBatch(ksym::BreakpadOptionsOf(options.dwarf), add);
  return {};
}

// What the file should have been made of.
ksym::Status ForEachFunction(const GsymOptions& options, const IsSame& is_same,
                             const AddBatch& add) {
  const auto source = OpenSource(options.program);
  if (!source) return ksym::Fail(source.error());
  if (IsBreakpad(*source)) {
    return ForEachBreakpadFunction(options, is_same, add);
  }
  auto functions =
      ksym::ElfFunctions::Open(*source, FinderFor(options.program, *source));
  if (!functions) {
    return ksym::Fail(
        std::move(functions.error()).WithContext(options.program));
  }
  if (!is_same(functions->build_id())) return OtherProgram(options);
  functions->ForEachBatch(
      options.dwarf, RunUnitsOnThreads(options.threads, [](size_t, size_t) {}),
      add);
  return {};
}

}  // namespace

ksym::Result<bool> VerifyGsym(const GsymOptions& options, const Writer& write) {
  const auto text =
      ksym::ReadFile(options.input, std::numeric_limits<uint32_t>::max());
  if (!text) return ksym::Fail(text.error());
  const auto file = ksym::GsymFile::Parse(std::as_bytes(std::span(*text)));
  if (!file) {
    return ksym::Fail(ksym::Error(file.error()).WithContext(options.input));
  }
  Verifier verifier(*file, write);
  const auto checked = ForEachFunction(
      options,
      [&](const std::string& build_id) -> bool {
        return build_id.substr(0, ksym::kGsymMaxUuidBytes) == file->uuid();
      },
      [&](const ksym::FunctionBatch& batch) { verifier.Check(batch); });
  if (!checked) return ksym::Fail(checked.error());
  return verifier.PrintSummary();
}

}  // namespace gen
