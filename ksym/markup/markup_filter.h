// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ksym/markup/markup_context.h"
#include "ksym/markup/markup_parser.h"
#include "ksym/markup/markup_printer.h"
#include "ksym/markup/markup_render.h"
#include "ksym/markup/markup_reporter.h"
#include "ksym/markup/markup_symbolizer.h"

namespace ksym {

// Takes what a filter prints.
class MarkupOutput {
 public:
  MarkupOutput() = default;
  MarkupOutput(const MarkupOutput&) = delete;
  MarkupOutput& operator=(const MarkupOutput&) = delete;
  virtual ~MarkupOutput() = default;

  // The log with names; parts of lines, too.
  virtual void WriteLog(std::string_view text) = 0;
  // Whole lines about what is wrong with it.
  virtual void WriteReport(std::string_view text) = 0;
};

struct MarkupFilterOptions {
  MarkupColor color = MarkupColor::kOff;
  // A longer line is filtered in parts of at most this size. An element that
  // is longer than half of it can be cut and is text then.
  size_t max_line_bytes = size_t{1} << 20;
};

// Replaces the elements of a log by text for people, as llvm-symbolizer does
// it with --filter-markup, and beyond it `hexdict` and `dumpfile`. Context
// elements become lines such as
//   [[[ELF module #0x1 "libc.so"; BuildID=83238a [0x7acb-0x7acc](rx)]]]
// which hold everything said about a module in a row, so such a line is
// printed when another one follows; the rest of a line with context is left
// out. What is wrong is reported and never stops the filter.
// Memory: two lines, a multi-line element, and the context (MarkupContext).
// Not thread-safe.
class MarkupFilter {
 public:
  // Borrows both.
  MarkupFilter(const MarkupFilterOptions& options, MarkupSymbolizer& symbolizer,
               MarkupOutput& output);
  MarkupFilter(const MarkupFilter&) = delete;
  MarkupFilter& operator=(const MarkupFilter&) = delete;

  // The next bytes of the log, cut anywhere. All lines that are whole by now
  // have been written on return.
  void Push(std::string_view bytes);
  // Ends the log: writes what is left, and what was lost.
  void Finish();

  struct Statistics {
    uint64_t cut_lines = 0;           // with markup, and too long
    uint64_t oversized_elements = 0;  // over several lines, and too long
    uint64_t refused_context = 0;     // for which there was no room
  };
  Statistics statistics() const;

 private:
  class BlockScanner;
  enum class LineEnd : uint8_t { kNewline, kCut };

  bool is_plain_state() const;
  // Takes one line or part of a line off the front of `bytes`.
  void TakeLine(std::string_view& bytes);
  size_t CutSize(std::string_view line) const;
  void FilterLine(std::string_view line, LineEnd end);
  void FilterNodes();
  // True: the node is context, and the rest of its line is not printed.
  bool TryContext(const MarkupNode& node);
  void TakeMmap(const MarkupNode& element);
  void TakeReset(const MarkupNode& element);
  void TakeModule(const MarkupNode& element);
  std::optional<MarkupModule> ParseModule(const MarkupNode& element);
  std::optional<MarkupMmap> ParseMmap(const MarkupNode& element);
  std::optional<uint64_t> ParseInteger(std::string_view field,
                                       std::string_view type);
  bool HasRoom(bool has_room, const MarkupNode& element);
  void ReportOverlap(const MarkupMmap& other, const MarkupNode& element);

  void PrintDeferred();
  void BeginModuleLine(const MarkupModule& module);
  void EndModuleLine();
  void FlushIfLarge();
  void Flush();
  std::string_view line_end() const { return ends_crlf_ ? "\r\n" : "\n"; }

  const MarkupFilterOptions options_;
  MarkupOutput& output_;
  std::string log_;
  std::string report_;
  MarkupParser parser_;
  MarkupContext context_;
  MarkupPrinter printer_;
  MarkupReporter reporter_;
  MarkupRenderer renderer_;

  std::string partial_;  // a line without its end
  bool ends_crlf_ = false;
  bool inside_cut_line_ = false;
  bool counted_cut_line_ = false;
  bool drop_rest_ = false;  // of the line: it has context

  // Pieces of the line before what may be context.
  std::vector<MarkupNode> deferred_;
  size_t deferred_count_ = 0;
  // The line about a module that is being built.
  const MarkupModule* module_line_ = nullptr;
  std::vector<const MarkupMmap*> module_mmaps_;
  uint64_t cut_lines_ = 0;
  uint64_t refused_context_ = 0;
};

}  // namespace ksym
