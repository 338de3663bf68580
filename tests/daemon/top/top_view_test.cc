// SPDX-License-Identifier: Apache-2.0
#include "daemon/top/top_view.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/output/text_columns.h"

namespace profd {
namespace {

using enum ThreadState;

constexpr uint64_t kMs = 1'000'000;

TopRow RowOf(std::string_view name, uint64_t running_ms, uint64_t blocked_ms,
             uint64_t total_ms) {
  TopRow row;
  row.name = name;
  row.self[kRunning] = running_ms * kMs;
  row.self[kBlocked] = blocked_ms * kMs;
  row.total = row.self;
  row.total[kRunning] += total_ms * kMs;
  return row;
}

// Two seconds in which a function ran and another waited.
TopTables Example() {
  TopTables tables;
  tables.functions = {
      RowOf("Hot [spin]", 1960, 0, 0), RowOf("main [spin]", 20, 0, 1960),
      RowOf("std::map<int, std::string>::insert(int, char*) [app]", 2, 0, 0),
      RowOf("read [libc.so.6]", 0, 1500, 0)};
  tables.commands = {RowOf("spin", 1980, 0, 0), RowOf("sh", 0, 1500, 0)};
  tables.commands[0].threads = 1;
  tables.commands[1].threads = 12;
  tables.threads = {RowOf("spin", 1980, 0, 0)};
  tables.threads[0].pid = 4711;
  tables.threads[0].tid = 4712;
  tables.threads[0].place = "Hot [spin]";
  tables.sum[kRunning] = 1982 * kMs;
  tables.sum[kBlocked] = 1500 * kMs;
  tables.sum[kParked] = 40000 * kMs;
  tables.duration_ns = 2000 * kMs;
  tables.cpus = 2;
  return tables;
}

const TopFacts kFacts = {
    .target = "all threads", .rate = "99 Hz", .own_cpus = 0.0123};

std::string Screen(const TopTables& tables, const TopState& state,
                   const ScreenSize& size, const TopFacts& facts = kFacts) {
  std::string text;
  for (const ScreenLine& line : DrawTop(tables, state, facts, size)) {
    text += line.text + "\n";
  }
  return text;
}

// The whole screen of functions at 80 columns.
TEST(TopViewTest, FunctionsAt80Columns) {
  EXPECT_EQ(
      Screen(Example(), {}, {.columns = 80, .rows = 9}),
      "ksym-profile top: all threads, 99 Hz, last 2.0 s; own 1.2 % of a CPU\n"
      "running 0.99 of 2 CPUs, runnable 0.00, blocked 0.75, parked 20.00\n"
      "  >RUNNING  runnable   blocked     total  function\n"
      "      0.98         -         -      0.98  Hot [spin]\n"
      "      0.01         -         -      0.99  main [spin]\n"
      "      0.00         -         -      0.00  std::map<>::insert() [app]\n"
      "         -         -      0.75         -  read [libc.so.6]\n"
      "\n"
      "q quit  f/c/t view  s sort  / filter  +/- window  w page  p pause  ? "
      "help\n");
}

// A narrow and low screen has the column that is sorted by and the first rows.
TEST(TopViewTest, FunctionsAt40Columns) {
  TopState state;
  state.order = {.state = kBlocked, .by_total = true};
  EXPECT_EQ(Screen(Example(), state, {.columns = 40, .rows = 6}),
            "ksym-profile top: all threads, 99 Hz, ..\n"
            "running 0.99 of 2 CPUs, runnable 0.00,..\n"
            "   BLOCKED    >total  function\n"
            "      0.75      0.75  read [libc.so.6]\n"
            "         -         -  main [spin]\n"
            "q quit  f/c/t view  s sort  / filter  ..\n");
}

// A function that does not fit gives up its module before its name.
TEST(TopViewTest, ShortensFunctions) {
  TopTables tables = Example();
  tables.functions = {RowOf("a_function_of_thirty_columns_ [module]", 9, 0, 0),
                      RowOf("[libfoo.so]", 8, 0, 0),
                      RowOf("Run(int, char**) [app (deleted)]", 7, 0, 0)};
  const auto lines = DrawTop(tables, {}, kFacts, {.columns = 72, .rows = 24});
  EXPECT_TRUE(lines[3].text.ends_with("  a_function_of_thirty_columns_"))
      << lines[3].text;
  EXPECT_TRUE(lines[4].text.ends_with("  [libfoo.so]")) << lines[4].text;
  EXPECT_TRUE(lines[5].text.ends_with("  Run() [app (deleted)]"))
      << lines[5].text;
}

// Threads have their ids and where they are; commands the number of threads.
TEST(TopViewTest, ThreadsAndCommands) {
  TopState state;
  state.subject = TopSubject::kThreads;
  const auto threads =
      DrawTop(Example(), state, kFacts, {.columns = 80, .rows = 24});
  EXPECT_EQ(threads[2].text,
            "  >RUNNING  runnable   blocked     pid     tid command         "
            "function");
  EXPECT_EQ(threads[3].text,
            "      0.99         -         -    4711    4712 spin            "
            "Hot [spin]");
  const auto narrow =
      DrawTop(Example(), state, kFacts, {.columns = 40, .rows = 24});
  EXPECT_EQ(narrow[2].text, "  >RUNNING     tid command");
  EXPECT_EQ(narrow[3].text, "      0.99    4712 spin");
  state.subject = TopSubject::kCommands;
  const auto commands =
      DrawTop(Example(), state, kFacts, {.columns = 80, .rows = 24});
  EXPECT_EQ(commands[2].text,
            "  >RUNNING  runnable   blocked   threads  command");
  EXPECT_EQ(commands[4].text, "         -         -      0.75        12  sh");
}

// No screen makes a line wider than it is, or more lines than it has, whatever
// is on it.
TEST(TopViewTest, FitsAnyScreen) {
  TopTables tables = Example();
  tables.functions.push_back(
      RowOf("\xe6\xbc\xa2\xe5\xad\x97\xe6\xbc\xa2\xe5\xad\x97 \xf0\x9f\x98\x80"
            " e\xcc\x81 [long-long-long-long-long-long-long]",
            5, 5, 5));
  tables.threads[0].name = std::string(300, 'x');
  TopFacts facts = kFacts;
  facts.message = std::string(500, 'm');
  for (const TopSubject subject :
       {TopSubject::kFunctions, TopSubject::kCommands, TopSubject::kThreads}) {
    for (const size_t columns : {1u, 2u, 3u, 10u, 39u, 40u, 59u, 60u, 300u}) {
      for (const size_t rows : {1u, 2u, 3u, 4u, 5u, 100u}) {
        for (const bool help : {false, true}) {
          TopState state;
          state.subject = subject;
          state.shows_help = help;
          const auto lines =
              DrawTop(tables, state, facts, {.columns = columns, .rows = rows});
          EXPECT_LE(lines.size(), rows);
          for (const ScreenLine& line : lines) {
            EXPECT_LE(ColumnsOf(line.text), columns) << line.text;
          }
        }
      }
    }
  }
}

// A low screen leaves lines out, and never the one that says how to go back.
TEST(TopViewTest, HelpEndsWithTheWayBack) {
  TopState state;
  state.shows_help = true;
  for (const size_t rows : {1u, 5u, 17u, 18u, 20u, 21u, 24u}) {
    const auto lines =
        DrawTop(Example(), state, kFacts, {.columns = 80, .rows = rows});
    ASSERT_EQ(lines.size(), std::min<size_t>(rows, rows < 21 ? 18 : 21));
    EXPECT_EQ(lines.back().text, "Any key goes back.") << rows;
  }
}

// What was lost, and that waits are not sampled, stands above the table.
TEST(TopViewTest, SaysWhatIsMissing) {
  TopTables tables = Example();
  tables.lost = 12;
  TopFacts facts = kFacts;
  facts.sleepers_behind = std::chrono::seconds(3);
  EXPECT_EQ(DrawTop(tables, {}, facts, {.columns = 120, .rows = 24})[1].text,
            "running 0.99 of 2 CPUs, runnable 0.00, blocked 0.75, parked 20.00"
            "; sleepers 3 s late");
  facts.no_waits = "the kernel has no BTF";
  const auto lines = DrawTop(tables, {}, facts, {.columns = 120, .rows = 24});
  EXPECT_TRUE(lines[0].text.ends_with("; 12 samples lost")) << lines[0].text;
  EXPECT_EQ(lines[0].style, ScreenLine::Style::kWarning);
  EXPECT_EQ(lines[1].text,
            "running 0.99 of 2 CPUs; waits are not sampled: the kernel has no "
            "BTF");
}

// A table without any time says why; as text it does, too.
TEST(TopViewTest, SaysWhyThereIsNothing) {
  TopFacts facts = kFacts;
  facts.no_time = "no sample: process 12 has ended";
  const auto lines = DrawTop({}, {}, facts, {.columns = 80, .rows = 24});
  EXPECT_EQ(lines[3].text, facts.no_time);
  EXPECT_EQ(lines.size(), 24u);
  EXPECT_EQ(DrawTop({}, {}, facts, {.columns = 80, .rows = 4}).size(), 4u);
  EXPECT_TRUE(PrintTop({}, {}, facts, 20).ends_with(facts.no_time + "\n"));
}

// The last line has the filter while it is typed, then a message, and no byte
// of either reaches the terminal as a command.
TEST(TopViewTest, LastLine) {
  TopState state;
  state.filter = "rea";
  state.edits_filter = true;
  const ScreenSize size = {.columns = 80, .rows = 24};
  EXPECT_EQ(DrawTop(Example(), state, kFacts, size).back().text,
            "/rea_  1 rows; Enter keeps it, Esc clears it");
  state.edits_filter = false;
  EXPECT_EQ(DrawTop(Example(), state, kFacts, size).back().text,
            "filter: rea  1 rows; Esc clears it");
  TopFacts facts = kFacts;
  facts.message = "no page: \x1b[2Jx";
  EXPECT_EQ(DrawTop(Example(), state, facts, size).back().text,
            "no page: ?[2Jx");
}

// Scrolled rows begin where the state says, but a screen is never empty for
// that.
TEST(TopViewTest, ScrolledRows) {
  TopState state;
  state.first = 100;
  const auto lines =
      DrawTop(Example(), state, kFacts, {.columns = 80, .rows = 6});
  ASSERT_EQ(lines.size(), 6u);
  EXPECT_TRUE(lines[4].text.ends_with("read [libc.so.6]")) << lines[4].text;
  EXPECT_EQ(TableRows({.columns = 80, .rows = 6}), 2u);
  EXPECT_EQ(TableRows({.columns = 80, .rows = 2}), 0u);
}

// As text names are whole, and there is no line of keys.
TEST(TopViewTest, PrintsText) {
  const std::string text = PrintTop(Example(), {}, kFacts, 20);
  EXPECT_NE(text.find("std::map<int, std::string>::insert(int, char*) [app]\n"),
            std::string::npos)
      << text;
  EXPECT_TRUE(text.ends_with("read [libc.so.6]\n")) << text;
  EXPECT_EQ(PrintTop({}, {}, kFacts, 20),
            "ksym-profile top: all threads, 99 Hz, last 0.0 s; own 1.2 % of a "
            "CPU\nrunning 0.00, runnable 0.00, blocked 0.00, parked 0.00\n"
            "  >RUNNING  runnable   blocked     total  function\n");
}

}  // namespace
}  // namespace profd
