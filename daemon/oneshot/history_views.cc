// SPDX-License-Identifier: Apache-2.0
#include "daemon/oneshot/history_views.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>
#include <vector>

#include "daemon/base/now_ns.h"
#include "daemon/oneshot/time_text.h"
#include "daemon/output/text_columns.h"
#include "ksym/base/printable.h"

namespace profd {
namespace {

constexpr size_t kBarColumns = 40;
constexpr size_t kNameColumns = 28;
constexpr size_t kNumberColumns = 10;

// The unit of a time line's numbers once they are divided by the time.
std::string_view RateUnit(std::string_view unit) {
  return unit == "nanoseconds" ? "CPUs" : "per s";
}

// The use on average; where values are nanoseconds, CPUs or threads.
double AverageOf(uint64_t value, uint64_t known_ns) {
  return known_ns == 0
             ? 0
             : static_cast<double>(value) / static_cast<double>(known_ns);
}

double ShownAverage(const history::Timeline& line, uint64_t value,
                    uint64_t known_ns) {
  const double average = AverageOf(value, known_ns);
  return line.unit == "nanoseconds"
             ? average
             : average * static_cast<double>(kNsPerSecond);
}

std::string MarksOf(const history::Timeline::Step& step) {
  std::string marks;
  if (step.known_ns == 0) return "  nothing is known";
  if (step.lost > 0) marks += fmt::format("  {} samples lost", step.lost);
  if (step.has_restart) marks += "  restart";
  if (step.has_set_back) marks += "  clock set back";
  if (step.has_new_rate) marks += "  new rate";
  return marks;
}

std::string RowName(const history::Timeline::Row& row, history::TimelineBy by) {
  if (row.is_rest) return "[others]";
  if (!row.comm.empty()) return ksym::Printable(row.name + ' ' + row.comm);
  if (!row.name.empty()) return ksym::Printable(row.name);
  switch (by) {
    case history::TimelineBy::kUnit:
      return "[no unit]";
    case history::TimelineBy::kContainer:
      return "[no container]";
    case history::TimelineBy::kPod:
      return "[no pod]";
    case history::TimelineBy::kCommand:
      return "[no command]";
    case history::TimelineBy::kProcess:
    case history::TimelineBy::kAll:
      break;
  }
  return "all";
}

void WriteCurve(const history::Timeline& line, OutputBuffer& out) {
  std::vector<double> values;
  for (size_t i = 0; i < line.steps.size(); ++i) {
    const uint64_t value = line.rows.empty() ? 0 : line.rows[0].values[i];
    values.push_back(ShownAverage(line, value, line.steps[i].known_ns));
  }
  const double largest = std::max(std::ranges::max(values), 1e-9);
  for (size_t i = 0; i < values.size(); ++i) {
    const history::Timeline::Step& step = line.steps[i];
    const auto bar =
        static_cast<size_t>(std::lround(values[i] / largest * kBarColumns));
    out.text().append(
        fmt::format("{}  {:>9} {}  {}{}\n",
                    LocalTimeText(line.from_unix_ns + i * line.step_ns),
                    step.known_ns == 0 ? "-" : fmt::format("{:.3f}", values[i]),
                    RateUnit(line.unit), std::string(bar, '#'), MarksOf(step)));
  }
}

// A step's character says how much of the largest value of all rows it has.
void WriteHeat(const history::Timeline& line, history::TimelineBy by,
               size_t columns, OutputBuffer& out) {
  constexpr std::array<std::string_view, 9> kHeat = {
      " ",      "\u2581", "\u2582", "\u2583", "\u2584",
      "\u2585", "\u2586", "\u2587", "\u2588"};
  double largest = 1e-9;
  for (const auto& row : line.rows) {
    for (size_t i = 0; i < row.values.size(); ++i) {
      largest =
          std::max(largest, AverageOf(row.values[i], line.steps[i].known_ns));
    }
  }
  const size_t room = columns == 0
                          ? kNameColumns
                          : std::clamp<size_t>(columns / 3, 8, kNameColumns);
  for (const auto& row : line.rows) {
    std::string text;
    AppendPadded(FitName(RowName(row, by), room), room, text);
    text += fmt::format("{:>{}.3f} ",
                        ShownAverage(line, row.sum, line.coverage.known_ns),
                        kNumberColumns);
    for (size_t i = 0; i < row.values.size(); ++i) {
      const uint64_t known = line.steps[i].known_ns;
      const double share = AverageOf(row.values[i], known) / largest;
      const auto heat = static_cast<size_t>(std::lround(share * 8));
      // Little must not look like nothing, nor like what is not known.
      text += known == 0 ? "\u00b7"
                         : kHeat[heat == 0 && row.values[i] > 0 ? 1 : heat];
    }
    out.text().append(text + "\n");
  }
  const std::string range = fmt::format(
      "{} to {}, {} s each; {}", LocalTimeText(line.from_unix_ns),
      LocalTimeText(line.from_unix_ns + line.steps.size() * line.step_ns),
      line.step_ns / kNsPerSecond, RateUnit(line.unit));
  out.text().append(range + "\n");
}

// Nothing, or what is special about a file.
std::string RemarkOn(const history::FileSummary& file) {
  if (file.torn_bytes > 0) {
    return fmt::format(" ({} bytes behind the last whole record)",
                       file.torn_bytes);
  }
  if (!file.is_thinned) return {};
  return fmt::format(" (thinned out: {} rare stacks are folded)",
                     file.folded_stacks);
}

}  // namespace

void WriteListing(const history::ListingAnswer& answer, OutputBuffer& out) {
  out.text().append(fmt::format(
      "{:<19}  {:<19}  {:>10}  {:>10}  {:>6}  {:>6}  {:>8}"
      "  file\n",
      "from", "to", "bytes", "samples", "lost", "holes", "restarts"));
  uint64_t bytes = 0, samples = 0, lost = 0;
  for (const history::FileSummary& file : answer.files) {
    bytes += file.bytes;
    samples += file.samples;
    lost += file.lost;
    const bool is_empty = file.coverage.parts == 0;
    out.text().append(fmt::format(
        "{:<19}  {:<19}  {:>10}  {:>10}  {:>6}  {:>6}  {:>8}  {}{}\n",
        is_empty ? "-" : LocalTimeText(file.from_unix_ns),
        is_empty ? "-" : LocalTimeText(file.until_unix_ns), file.bytes,
        file.samples, file.lost, file.coverage.holes, file.coverage.restarts,
        TextOf(file.name), RemarkOn(file)));
  }
  out.text().append(fmt::format("{} files, {} bytes, {} samples, {} lost\n",
                                answer.files.size(), bytes, samples, lost));
}

void WriteFunctions(const history::FunctionTable& table, size_t top,
                    size_t columns, OutputBuffer& out) {
  constexpr size_t kNumbersWidth = 44;
  const bool is_time = table.unit == "nanoseconds";
  const double whole = table.sum == 0 ? 1 : static_cast<double>(table.sum);
  const double seconds = static_cast<double>(table.coverage.known_ns) / 1e9;
  const auto shown = [&](uint64_t value) {
    if (!is_time) return fmt::format("{}", value);
    return fmt::format(
        "{:.3f}", seconds > 0 ? static_cast<double>(value) / 1e9 / seconds : 0);
  };
  const std::string unit = is_time ? "CPUs" : table.unit;
  out.text().append(fmt::format("{:>9} {:>10}  {:>9} {:>10}  function\n",
                                "self", unit, "total", unit));
  size_t rows = 0;
  for (const auto& line : table.lines) {
    if (top != 0 && rows++ == top) break;
    std::string name(table.strings.Get(line.name));
    const std::string_view object = table.strings.Get(line.object);
    if (!object.empty()) {
      const std::string_view file = object.substr(object.rfind('/') + 1);
      name += object.starts_with('[') ? fmt::format(" {}", file)
                                      : fmt::format(" [{}]", file);
    }
    name = ksym::Printable(name);
    if (columns > kNumbersWidth) name = FitName(name, columns - kNumbersWidth);
    out.text().append(fmt::format("{:>7.2f} % {:>10}  {:>7.2f} % {:>10}  {}\n",
                                  100 * static_cast<double>(line.self) / whole,
                                  shown(line.self),
                                  100 * static_cast<double>(line.total) / whole,
                                  shown(line.total), name));
  }
  out.text().append(fmt::format("{} functions, {} {}\n", table.lines.size(),
                                shown(table.sum), unit));
}

void WriteTimeline(const history::Timeline& line, history::TimelineBy by,
                   size_t columns, OutputBuffer& out) {
  if (by == history::TimelineBy::kAll) {
    WriteCurve(line, out);
  } else {
    WriteHeat(line, by, columns, out);
  }
}

}  // namespace profd
