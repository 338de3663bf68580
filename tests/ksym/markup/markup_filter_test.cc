// SPDX-License-Identifier: Apache-2.0
#include "ksym/markup/markup_filter.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <string_view>

#include "tests/ksym/markup/fake_symbolizer.h"

namespace ksym {
namespace {

constexpr std::string_view kContext =
    "{{{module:0:a.out:elf:ab}}}\n{{{mmap:0x1000:0x1000:load:0:rx:0x0}}}\n"
    "{{{mmap:0x2000:0x1000:load:0:rw:0x1000}}}\n";
constexpr std::string_view kContextShown =
    "[[[ELF module #0x0 \"a.out\"; BuildID=ab "
    "[0x1000-0x1fff](rx),[0x2000-0x2fff](rw)]]]\n";

struct Filtered {
  std::string log;
  std::string report;
  MarkupFilter::Statistics statistics;
};

// Filters the log in pieces of `chunk` bytes.
Filtered Filter(std::string_view log, size_t chunk = std::string_view::npos,
                const MarkupFilterOptions& options = {}) {
  FakeMarkupSymbolizer symbolizer;
  MarkupStrings output;
  MarkupFilter filter(options, symbolizer, output);
  for (size_t at = 0; at < log.size(); at += std::min(chunk, log.size())) {
    filter.Push(log.substr(at, chunk));
  }
  filter.Finish();
  return {output.log, output.report, filter.statistics()};
}

std::string Shown(std::string_view line) {
  const std::string log = Filter(std::string(kContext) + std::string(line)).log;
  EXPECT_TRUE(log.starts_with(kContextShown)) << log;
  return log.substr(std::min(log.size(), kContextShown.size()));
}

TEST(MarkupFilterTest, PrintsInlinedFramesAboveTheirFunction) {
  // Each inlined frame has a line of its own; the last one ends as the log's.
  EXPECT_EQ(
      Shown("\na {{{bt:1:0x1011:ra}}} b\r\n"),
      "\na     #1.1  0x0000000000001010 inlined i.h:3:4 (a.out+0x10)\r\n"
      "    #1    0x0000000000001010 function f.c:12:7 (a.out+0x10) b\r\n");
}

TEST(MarkupFilterTest, CodeHasTheFunctionAndTheInnermostLine) {
  // As llvm-symbolizer: the linker's name of what was compiled there.
  EXPECT_EQ(Shown("{{{pc:0x1010}}} {{{pc:0x1010:ra}}}\n"),
            "function[i.h:3] function[f.c:12]\n");
}

TEST(MarkupFilterTest, OnlyEightColorsAreControlSequences) {
  // Also where a sequence stands alone between two elements.
  const auto between = [](std::string_view text) {
    return Filter("{{{symbol:a}}}" + std::string(text) + "{{{symbol:a}}}\n")
        .log;
  };
  const std::string name = Filter("{{{symbol:a}}}\n").log;
  const std::string shown = name.substr(0, name.size() - 1);
  for (const char* text : {"\033[39m", "\033[38m", "\033[3/m", "\033[3xm"}) {
    EXPECT_EQ(between(text), shown + text + name);
  }
  for (const char* text : {"\033[30m", "\033[37m"}) {
    EXPECT_EQ(between(text), shown + name);
  }
}

TEST(MarkupFilterTest, HexdictKeepsItsLayout) {
  // Only values in a module get a name, in any whitespace.
  EXPECT_EQ(Shown("x {{{hexdict:A:0x1013\n\tB:   0x2004  C: 0 D:0x9\n}}} y\n"),
            "x [[[hexdict:A:0x1013 <function+0x3>\n"
            "\tB:   0x2004 <variable+0x4>  C: 0 D:0x9\n]]] y\n");
  EXPECT_EQ(Shown("{{{hexdict}}}{{{hexdict:}}}{{{hexdict:a:}}}\n"),
            "[[[hexdict]]][[[hexdict:]]][[[hexdict:a:]]]\n");
}

TEST(MarkupFilterTest, UnfinishedElementsAreTextAtTheEnd) {
  // What began an element and never ended it is not lost.
  EXPECT_EQ(Filter("a {{{hexdict: A: 1\nB: 2").log,
            "a {{{hexdict: A: 1\nB: 2\n");
}

TEST(MarkupFilterTest, WritesWholeLinesAtOnce) {
  // A line is there when Push has seen its end, and not later.
  FakeMarkupSymbolizer symbolizer;
  MarkupStrings output;
  MarkupFilter filter({}, symbolizer, output);
  filter.Push("a\n{{{symbol:x}}");
  EXPECT_EQ(output.log, "a\n");
  filter.Push("}\nb");
  EXPECT_EQ(output.log, "a\n<x>\n");
  filter.Finish();
  EXPECT_EQ(output.log, "a\n<x>\nb\n");
}

TEST(MarkupFilterTest, ChunksDoNotMatter) {
  // However the log is cut, the same comes out.
  const std::string log =
      "plain\nplain two\n" + std::string(kContext) +
      "\033[31m{{{bt:0:0x1000}}}\nplain\r\n{{{module:1:missing:elf:cd}}}\r\n"
      "{{{pc}}} {{{Pc}}}\nx {{{reset}}} y\n{{{hexdict: A: 0x1000\nB\n}}}\nend";
  const Filtered whole = Filter(log);
  for (size_t chunk = 1; chunk < log.size(); ++chunk) {
    const Filtered got = Filter(log, chunk);
    EXPECT_EQ(got.log, whole.log) << chunk;
    EXPECT_EQ(got.report, whole.report) << chunk;
  }
}

TEST(MarkupFilterTest, LongLinesAreFilteredInParts) {
  // Elements survive the cuts, text is not lost, and the line is counted.
  MarkupFilterOptions options;
  options.max_line_bytes = 64;
  std::string log;
  std::string expected;
  for (int i = 0; i < 50; ++i) {
    log += std::string(static_cast<size_t>(i), 'x') + "{{{symbol:name}}}";
    expected += std::string(static_cast<size_t>(i), 'x') + "<name>";
  }
  const Filtered got = Filter(log + "\n", 7, options);
  EXPECT_EQ(got.log, expected + "\n");
  EXPECT_EQ(got.statistics.cut_lines, 1u);
  const std::string plain(1000, 'y');
  EXPECT_EQ(Filter(plain + "\nz\n", 7, options).log, plain + "\nz\n");
}

TEST(MarkupFilterTest, TheRestOfALongContextLineIsLeftOut) {
  // As that of a short one.
  MarkupFilterOptions options;
  options.max_line_bytes = 64;
  const std::string log = "{{{module:0:a:elf:ab}}}" + std::string(500, 'x');
  EXPECT_EQ(Filter(log + "\nend\n", 9, options).log,
            "[[[ELF module #0x0 \"a\"; BuildID=ab]]]\nend\n");
}

TEST(MarkupFilterTest, OversizedElementsAreText) {
  // An element without end cannot take all memory, and is counted.
  std::string log = "{{{hexdict:";
  for (int i = 0; i < 20; ++i) log += std::string(100'000, 'x') + "\n";
  const Filtered got = Filter(log + "}}}\n");
  EXPECT_EQ(got.log, log + "}}}\n");
  EXPECT_EQ(got.statistics.oversized_elements, 1u);
}

TEST(MarkupFilterTest, ReportsPointAtThePlace) {
  // The caret stands under the field that is wrong.
  EXPECT_EQ(Filter("at {{{pc:2}}} it\n").report,
            "error: expected address; found '2'\n"
            "at {{{pc:2}}} it\n"
            "         ^\n");
}

TEST(MarkupFilterTest, ReportsOfLongLinesAreShort) {
  // A line full of errors is not repeated whole for each of them.
  const std::string log = std::string(100'000, 'x') + "{{{pc:2}}}" +
                          std::string(100'000, 'x') + "\n";
  const std::string report = Filter(log).report;
  EXPECT_LT(report.size(), 3 * MarkupReporter::kMaxShownBytes);
  const size_t caret = report.rfind('^');
  const size_t line = report.rfind('\n', caret) + 1;
  const size_t shown = report.find('\n') + 1;
  EXPECT_EQ(report[shown + (caret - line)], '2');
}

TEST(MarkupFilterTest, ResetForgetsModules) {
  // After it an id may be used again, and missing files are reported again.
  const std::string log =
      "{{{module:0:missing:elf:cd}}}\n{{{mmap:0x1000:1:load:0:rx:0}}}\n"
      "{{{pc:0x1000}}}{{{pc:0x1000}}}\n{{{reset}}}\n";
  const Filtered got = Filter(log + log);
  EXPECT_EQ(got.log,
            "[[[ELF module #0x0 \"missing\"; BuildID=cd "
            "[0x1000-0x1000](rx)]]]\n"
            "[[[pc:0x1000]]][[[pc:0x1000]]]\n[[[reset]]]\n"
            "[[[ELF module #0x0 \"missing\"; BuildID=cd "
            "[0x1000-0x1000](rx)]]]\n"
            "[[[pc:0x1000]]][[[pc:0x1000]]]\n[[[reset]]]\n");
  const std::string once =
      "error: could not find build ID for ELF module #0x0 \"missing\"; "
      "BuildID=cd\n";
  EXPECT_EQ(got.report, once + once);
}

TEST(MarkupFilterTest, ContextIsBounded) {
  // No log can define modules without end.
  std::string log;
  for (size_t i = 0; i <= MarkupContext::kMaxModules; ++i) {
    log += "{{{module:" + std::to_string(i) + "::elf:ab}}}\n";
  }
  const Filtered got = Filter(log);
  EXPECT_EQ(got.statistics.refused_context, 1u);
  EXPECT_TRUE(got.report.starts_with("error: too much context"));
}

}  // namespace
}  // namespace ksym
