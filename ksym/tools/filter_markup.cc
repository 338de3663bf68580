// SPDX-License-Identifier: Apache-2.0
#include "ksym/tools/filter_markup.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ksym/base/file.h"

namespace ksym {
namespace {

constexpr size_t kReadBytes = size_t{256} << 10;

class Descriptors : public MarkupOutput {
 public:
  void WriteLog(std::string_view text) override { Write(STDOUT_FILENO, text); }
  void WriteReport(std::string_view text) override {
    Write(STDERR_FILENO, text);
  }
  const Status& status() const { return status_; }

 private:
  void Write(int fd, std::string_view text) {
    if (!status_) return;
    status_ = WriteAll(fd, text);
  }

  Status status_;
};

bool WantsColor(FilterMarkupOptions::Color color) {
  using Color = FilterMarkupOptions::Color;
  if (color != Color::kAuto) return color == Color::kAlways;
  const char* terminal = std::getenv("TERM");
  return ::isatty(STDOUT_FILENO) == 1 && terminal != nullptr &&
         std::string_view(terminal) != "dumb";
}

std::string LossText(const MarkupFilter::Statistics& statistics,
                     size_t max_line_bytes) {
  std::string text;
  const auto add = [&text](uint64_t count, const std::string& what) {
    if (count > 0) text += fmt::format("warning: {} {}\n", count, what);
  };
  add(statistics.cut_lines,
      fmt::format("line(s) with markup were longer than {} bytes and were "
                  "filtered in parts",
                  max_line_bytes));
  add(statistics.oversized_elements,
      fmt::format("element(s) over several lines were longer than {} bytes "
                  "and were left as they are",
                  MarkupParser::kMaxElementBytes));
  add(statistics.refused_context,
      fmt::format("module(s) and mmap(s) were left out: at most {} and {} are "
                  "kept",
                  MarkupContext::kMaxModules, MarkupContext::kMaxMmaps));
  return text;
}

}  // namespace

Status FilterStandardInput(const FilterMarkupOptions& options) {
  MarkupNames names(options.names);
  if (auto loaded = names.LoadKernelSymbols(); !loaded) {
    return Fail(std::move(loaded.error()).WithContext("--kernel-symbols"));
  }
  Descriptors output;
  MarkupFilterOptions filter_options;
  if (WantsColor(options.color)) filter_options.color = MarkupColor::kOn;
  filter_options.max_line_bytes = options.max_line_bytes;
  MarkupFilter filter(filter_options, names, output);
  std::vector<char> block(kReadBytes);
  while (true) {
    const ssize_t size = ::read(STDIN_FILENO, block.data(), block.size());
    if (size < 0 && errno == EINTR) continue;
    if (size < 0) return FailErrno(errno, "standard input");
    if (size == 0) break;
    filter.Push({block.data(), static_cast<size_t>(size)});
    // No further log is taken from a program whose output goes nowhere.
    if (!output.status()) return output.status();
  }
  filter.Finish();
  // After the last line: Finish() may still read files and have losses.
  output.WriteReport(LossText(filter.statistics(), options.max_line_bytes));
  for (const std::string& problem : names.NoteProblems()) {
    output.WriteReport("warning: " + problem + '\n');
  }
  return output.status();
}

}  // namespace ksym
