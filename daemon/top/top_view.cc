// SPDX-License-Identifier: Apache-2.0
#include "daemon/top/top_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <limits>
#include <string_view>
#include <utility>

#include "daemon/output/text_columns.h"
#include "ksym/base/printable.h"

namespace profd {
namespace {

using Style = ScreenLine::Style;

constexpr size_t kLinesAbove = 3;  // title, sums, header
constexpr size_t kLinesBelow = 1;
// Narrower ones have the column that is sorted by alone.
constexpr size_t kAllColumns = 60;
constexpr size_t kNumberWidth = 10;
constexpr size_t kIdWidth = 8;
constexpr size_t kCommWidth = 16;
constexpr std::array kColumnStates = {
    ThreadState::kRunning, ThreadState::kRunnable, ThreadState::kBlocked};

constexpr std::string_view kKeyHint =
    "q quit  f/c/t view  s sort  / filter  +/- window  w page  p pause  ? help";
constexpr std::array<std::string_view, 21> kHelp = {
    "Times are numbers of threads: 1.00 is one thread all the time.",
    "",
    "  f c t      functions, commands, threads",
    "  s > right  sort by the next column (< left: the one before)",
    "  /          show rows with a text: Enter keeps it, Esc clears it",
    "  + -        a longer or a shorter window",
    "  w          write the window as a page, in the selected state",
    "  k          hide parked threads, or show them again",
    "  p space    pause: the table stays, sampling goes on",
    "  up down    scroll; also PgUp, PgDn, Home, End",
    "  Ctrl-L     draw the screen anew",
    "  q Ctrl-C   quit",
    "",
    "  running    has a CPU",
    "  runnable   wants a CPU and has none",
    "  blocked    waits for anything else",
    "  total      in the state in capitals, with all that it calls",
    "  [parked]   threads that wait at one place nearly all the time",
    "",
    "'>' marks the column that is sorted by.",
    "Any key goes back.",
};

// "0.98"; "-" where there is none at all.
std::string Threads(uint64_t ns, uint64_t duration_ns) {
  if (ns == 0 || duration_ns == 0) return "-";
  const double threads =
      static_cast<double>(ns) / static_cast<double>(duration_ns);
  if (threads >= 1000) return fmt::format("{:.0f}", threads);
  return threads < 0.005 ? "0.00" : fmt::format("{:.2f}", threads);
}

std::string Upper(std::string_view text) {
  std::string out(text);
  for (char& c : out) {
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  }
  return out;
}

// "Sort [libfoo.so]" in so many columns: its arguments go first, then the
// module, then its beginning.
std::string FitFunction(std::string_view name, size_t columns) {
  const size_t module = name.rfind(" [");
  if (ColumnsOf(name) <= columns || module == std::string_view::npos) {
    return FitName(name, columns);
  }
  const std::string_view function = name.substr(0, module);
  // The module as it is: "(deleted)" is no argument.
  std::string shorter = WithoutArguments(function);
  shorter += name.substr(module);
  return ColumnsOf(shorter) <= columns ? shorter : FitName(function, columns);
}

// Makes the lines of one table.
class TableView {
 public:
  TableView(const TopTables& tables, const TopState& state, size_t columns)
      : tables_(tables), state_(state), columns_(columns) {}

  std::string Header() const {
    std::string line;
    for (const ThreadState state : kColumnStates) {
      if (!IsShown(state)) continue;
      const bool is_chosen = state == state_.order.state;
      const std::string_view mark =
          is_chosen && !state_.order.by_total ? ">" : "";
      line += fmt::format("{:>{}}",
                          fmt::format("{}{}", mark,
                                      is_chosen ? Upper(Name(state))
                                                : std::string(Name(state))),
                          kNumberWidth);
    }
    switch (state_.subject) {
      case TopSubject::kFunctions:
        line += fmt::format(
            "{:>{}}", state_.order.by_total ? ">total" : "total", kNumberWidth);
        line += "  function";
        break;
      case TopSubject::kCommands:
        line += fmt::format("{:>{}}  command", "threads", kNumberWidth);
        break;
      case TopSubject::kThreads:
        if (is_wide()) line += fmt::format("{:>{}}", "pid", kIdWidth);
        line += fmt::format("{:>{}} {:<{}}", "tid", kIdWidth, "command",
                            is_wide() ? kCommWidth : 0);
        if (is_wide()) line += "function";
        break;
    }
    return CutLine(line, columns_);
  }

  std::string Line(const TopRow& row) const {
    std::string line;
    for (const ThreadState state : kColumnStates) {
      if (IsShown(state)) AppendNumber(row.self, state, line);
    }
    switch (state_.subject) {
      case TopSubject::kFunctions:
        AppendNumber(row.total, state_.order.state, line);
        line += "  ";
        AppendLast(row.name, line);
        break;
      case TopSubject::kCommands:
        line += fmt::format("{:>{}}  ", row.threads, kNumberWidth);
        AppendLast(row.name, line);
        break;
      case TopSubject::kThreads:
        if (is_wide()) line += fmt::format("{:>{}}", row.pid, kIdWidth);
        line += fmt::format("{:>{}} ", row.tid, kIdWidth);
        if (is_wide()) {
          AppendPadded(FitName(row.name, kCommWidth - 1), kCommWidth, line);
          AppendLast(row.place, line);
        } else {
          AppendLast(row.name, line);
        }
        break;
    }
    return CutLine(line, columns_);
  }

 private:
  bool is_wide() const { return columns_ >= kAllColumns; }
  bool IsShown(ThreadState state) const {
    return is_wide() || state == state_.order.state;
  }

  void AppendNumber(const TimesByState& times, ThreadState state,
                    std::string& line) const {
    line += fmt::format(
        "{:>{}}", Threads(TimeIn(times, state, state_), tables_.duration_ns),
        kNumberWidth);
  }

  // A name in what is left of the line.
  void AppendLast(std::string_view name, std::string& line) const {
    const size_t used = ColumnsOf(line);
    line += FitFunction(name, columns_ - std::min(columns_, used));
  }

  const TopTables& tables_;
  const TopState& state_;
  size_t columns_;
};

std::string TitleLine(const TopTables& tables, const TopState& state,
                      const TopFacts& facts) {
  std::string line = fmt::format(
      "ksym-profile top: {}, {}, last {:.1f} s; own {:.1f} % of a CPU",
      facts.target, facts.rate, static_cast<double>(tables.duration_ns) / 1e9,
      100 * facts.own_cpus);
  if (tables.lost != 0) {
    line += fmt::format("; {} samples lost", tables.lost);
  }
  if (state.is_paused) line = "PAUSED " + line;
  return line;
}

std::string SumLine(const TopTables& tables, const TopState& state,
                    const TopFacts& facts) {
  const auto threads = [&](ThreadState of) {
    const std::string number = Threads(tables.sum[of], tables.duration_ns);
    return number == "-" ? "0.00" : number;
  };
  std::string line = fmt::format("running {}", threads(ThreadState::kRunning));
  if (tables.cpus != 0) {
    line += fmt::format(" of {} {}", tables.cpus,
                        tables.cpus == 1 ? "CPU" : "CPUs");
  }
  if (!facts.no_waits.empty()) {
    return line + "; waits are not sampled: " + facts.no_waits;
  }
  line += fmt::format(
      ", runnable {}, blocked {}, parked {}{}", threads(ThreadState::kRunnable),
      threads(ThreadState::kBlocked), threads(ThreadState::kParked),
      state.parked == ParkedRows::kHidden ? " (hidden)" : "");
  if (facts.sleepers_behind.count() == 0) return line;
  return line +
         fmt::format("; sleepers {} s late", facts.sleepers_behind.count());
}

ScreenLine LastLine(const TopState& state, const TopFacts& facts, size_t rows) {
  if (state.edits_filter) {
    return {.text = fmt::format("/{}_  {} rows; Enter keeps it, Esc clears it",
                                state.filter, rows),
            .style = Style::kBold};
  }
  if (!facts.message.empty()) {
    return {.text = facts.message,
            .style = facts.is_warning ? Style::kWarning : Style::kBold};
  }
  if (!state.filter.empty()) {
    return {.text = fmt::format("filter: {}  {} rows; Esc clears it",
                                state.filter, rows),
            .style = Style::kGrey};
  }
  return {.text = std::string(kKeyHint), .style = Style::kGrey};
}

// All lines are printable here, whoever made the text.
void FinishLines(const ScreenSize& size, std::vector<ScreenLine>& lines) {
  for (ScreenLine& line : lines) {
    std::string text;
    ksym::AppendPrintable(line.text, text);
    line.text = CutLine(text, size.columns);
  }
  if (lines.size() > size.rows) lines.resize(size.rows);
}

// A low screen has no empty lines, and always says how to go back.
std::vector<ScreenLine> DrawHelp(const ScreenSize& size) {
  std::vector<ScreenLine> lines;
  lines.reserve(kHelp.size());
  for (const std::string_view line : kHelp) {
    if (line.empty() && size.rows < kHelp.size()) continue;
    lines.push_back({.text = std::string(line)});
  }
  if (lines.size() > size.rows && size.rows != 0) {
    lines[size.rows - 1] = lines.back();
  }
  FinishLines(size, lines);
  return lines;
}

}  // namespace

size_t TableRows(const ScreenSize& size) {
  constexpr size_t kOthers = kLinesAbove + kLinesBelow;
  return size.rows - std::min(size.rows, kOthers);
}

std::vector<ScreenLine> DrawTop(const TopTables& tables, const TopState& state,
                                const TopFacts& facts, const ScreenSize& size) {
  if (state.shows_help) return DrawHelp(size);
  const std::vector<const TopRow*> rows = ChooseRows(tables, state);
  const TableView view(tables, state, size.columns);
  std::vector<ScreenLine> lines = {
      {.text = TitleLine(tables, state, facts),
       .style = tables.lost == 0 ? Style::kBold : Style::kWarning},
      {.text = SumLine(tables, state, facts),
       .style = facts.no_waits.empty() ? Style::kPlain : Style::kWarning},
      {.text = view.Header(), .style = Style::kHeader}};
  if (!facts.no_time.empty()) {
    lines.push_back({.text = facts.no_time, .style = Style::kWarning});
  }
  const size_t page = TableRows(size);
  const size_t last = rows.size() - std::min(rows.size(), page);
  // The table may be shorter than when a key moved it.
  const size_t first = std::min(state.first, last);
  for (size_t i = 0; i < page && first + i < rows.size(); ++i) {
    lines.push_back({.text = view.Line(*rows[first + i])});
  }
  if (size.rows > kLinesAbove) {
    lines.resize(size.rows - kLinesBelow);
    lines.push_back(LastLine(state, facts, rows.size()));
  }
  FinishLines(size, lines);
  return lines;
}

std::string PrintTop(const TopTables& tables, const TopState& state,
                     const TopFacts& facts, size_t rows) {
  constexpr size_t kAnyWidth = std::numeric_limits<uint32_t>::max();
  const ScreenSize size = {.columns = kAnyWidth,
                           .rows = rows + kLinesAbove + kLinesBelow};
  std::vector<ScreenLine> lines = DrawTop(tables, state, facts, size);
  lines.pop_back();
  while (lines.back().text.empty()) lines.pop_back();
  std::string text;
  for (const ScreenLine& line : lines) {
    text += line.text;
    text += '\n';
  }
  return text;
}

}  // namespace profd
