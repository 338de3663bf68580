// SPDX-License-Identifier: Apache-2.0
#include "ksym/tools/process_source.h"

#include <unistd.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "ksym/base/file.h"
#include "ksym/base/text.h"
#include "ksym/demangle/demangle.h"
#include "ksym/process/process_image.h"
#include "ksym/symbolizer.h"
#include "ksym/tools/module_lines.h"

namespace ksym {
namespace {

// The 22nd field of /proc/PID/stat: what tells a process from a later one with
// its pid. The name before it may hold anything.
Result<uint64_t> ReadStartNs(uint32_t pid) {
  const std::string path = "/proc/" + std::to_string(pid) + "/stat";
  const auto text = ReadFile(path, 4096);
  if (!text) return Fail(text.error());
  const size_t name_end = text->rfind(") ");
  std::string_view rest = *text;
  rest.remove_prefix(name_end == std::string::npos ? rest.size()
                                                   : name_end + 2);
  constexpr int kFieldsBefore = 19;
  for (int i = 0; i < kFieldsBefore; ++i) TakeField(rest, ' ');
  const auto ticks = ParseUnsigned(TakeField(rest, ' '), 10);
  if (!ticks) return Fail(ErrorCode::kCorrupt, path + ": no start time");
  const auto ticks_per_second = static_cast<uint64_t>(::sysconf(_SC_CLK_TCK));
  return *ticks * (1'000'000'000 / ticks_per_second);
}

class ProcessSource : public AddressSource {
 public:
  ProcessSource(const SymbolizeOptions& options, DebugFileSource fetch)
      : demangle_(options.demangle),
        symbolizer_({.demangle = options.demangle}) {
    image_.id.pid = options.pid;
    symbolizer_.SetDebugFileSource(std::move(fetch));
    if (options.inlines) lines_.emplace(symbolizer_);
  }

  // Reads the mappings; fails when the process is gone.
  Status Read() {
    const auto start = ReadStartNs(image_.id.pid);
    if (!start && start.error().code() == ErrorCode::kNotFound) {
      return Fail(ErrorCode::kNotFound,
                  "there is no process " + std::to_string(image_.id.pid));
    }
    if (!start) return Fail(start.error());
    if (image_.id.start_ns != 0 && image_.id.start_ns != *start) {
      return Fail(ErrorCode::kNotFound, "another process has the pid now");
    }
    // After the start time: a process that takes the pid in between is then
    // noticed by the next Read(), and in the other order never.
    auto mappings = ReadMaps(image_.id.pid);
    if (!mappings) return Fail(std::move(mappings.error()));
    image_.id.start_ns = *start;
    image_.mappings = std::move(*mappings);
    return {};
  }

  void Resolve(uint64_t address, AddressAnswer& answer) override {
    ClearAnswer(answer);
    UserSymbol symbol = symbolizer_.Resolve(image_, {address});
    const bool unknown = symbol.reason == Unresolved::kUnmapped ||
                         symbol.reason == Unresolved::kNoProcess;
    if (unknown) {
      // The process may have mapped it since, as with dlopen(3).
      if (Read()) {
        symbol = symbolizer_.Resolve(image_, {address});
      } else {
        symbol.reason = Unresolved::kNoProcess;
      }
    }
    answer.module = symbol.module;
    answer.build_id = symbol.build_id;
    if (AddLines(address, symbol, answer)) return;
    if (symbol.reason != Unresolved::kNone) {
      answer.reason = UnresolvedName(symbol.reason);
    } else {
      AddName(symbol.name, answer);
      answer.symbol_start = address - symbol.symbol_offset;
    }
  }

 private:
  // True: the debug data have the address. The function itself keeps the name
  // of its symbol if it has one.
  bool AddLines(uint64_t address, const UserSymbol& symbol,
                AddressAnswer& answer) {
    if (!lines_ || symbol.build_id.empty()) return false;
    const GsymAnswer* found = lines_->Find(symbol.build_id, symbol.file_offset);
    if (found == nullptr) return false;
    for (const GsymFrame& frame : found->frames) {
      answer.frames.push_back({.function = Shown(frame.function),
                               .directory = frame.directory,
                               .file = frame.file,
                               .line = frame.line});
    }
    uint64_t offset = found->frames.back().offset;
    if (symbol.reason == Unresolved::kNone) {
      answer.frames.back().function = symbol.name;
      offset = symbol.symbol_offset;
    }
    answer.symbol_start = address - offset;
    return true;
  }

  // Each name is demangled once. Names are views of files: equal ones have one
  // address.
  std::string_view Shown(std::string_view name) {
    if (demangle_ == SymbolizerOptions::Demangle::kOff) return name;
    const auto [at, is_new] = names_.try_emplace(name.data());
    if (is_new) at->second = Demangle(name);
    return at->second;
  }

  const SymbolizerOptions::Demangle demangle_;
  Symbolizer symbolizer_;
  ProcessImage image_;
  std::optional<ModuleLines> lines_;
  std::unordered_map<const char*, std::string> names_;
};

}  // namespace

Result<std::unique_ptr<AddressSource>> OpenProcess(
    const SymbolizeOptions& options, DebugFileSource fetch) {
  auto source = std::make_unique<ProcessSource>(options, std::move(fetch));
  const auto read = source->Read();
  if (!read) return Fail(read.error());
  return source;
}

}  // namespace ksym
