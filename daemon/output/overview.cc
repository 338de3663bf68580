// SPDX-License-Identifier: Apache-2.0
#include "daemon/output/overview.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "daemon/output/summary.h"
#include "daemon/output/text_columns.h"
#include "ksym/base/keyed_hash.h"
#include "ksym/base/printable.h"

namespace profd {
namespace {

constexpr size_t kNumbers = 16;     // "100.0%  100.0%  " in front of a name
constexpr size_t kGap = 2;          // between two columns
constexpr size_t kMaxCommands = 5;  // of the line of commands
constexpr double kHotShare = 0.05;

struct Counts {
  uint64_t self = 0;
  uint64_t total = 0;
  auto operator<=>(const Counts&) const = default;
};

// A function and what the table says of it.
struct Row {
  std::string name;
  std::string module;
  std::string command = {};
  Counts counts = {};
};

struct Command {
  std::string name = {};
  uint64_t samples = 0;
};

// Adds up samples by function and by command.
class Counter {
 public:
  Counter(const Profile& profile, OutputOptions::By by)
      : profile_(profile), by_(by) {
    row_of_frame_.reserve(profile.frames.size());
    for (const Frame& frame : profile.frames) {
      row_of_frame_.push_back(RowOf(frame));
    }
    for (const ProfileSample& sample : profile.samples) Add(sample);
  }

  // The most self samples first, then the most in total, then by name.
  std::vector<Row> TakeRows() {
    NameCommands();
    std::erase_if(rows_, [](const Row& row) { return row.counts.total == 0; });
    std::ranges::sort(rows_, [](const Row& a, const Row& b) {
      if (a.counts != b.counts) return a.counts > b.counts;
      return std::tie(a.name, a.module) < std::tie(b.name, b.module);
    });
    return std::move(rows_);
  }

  // The most samples first.
  std::vector<Command> Commands() const {
    std::vector<Command> commands = commands_;
    std::ranges::sort(commands, [](const Command& a, const Command& b) {
      return a.samples != b.samples ? a.samples > b.samples : a.name < b.name;
    });
    return commands;
  }

 private:
  size_t RowOf(const Frame& frame) {
    const std::string_view path = profile_.String(frame.object);
    const std::string_view name = profile_.String(frame.name);
    auto key = std::pair(ksym::Printable(name.empty() ? "[unknown]" : name),
                         ksym::Printable(path.substr(path.rfind('/') + 1)));
    const auto [at, is_new] = by_name_.try_emplace(key, rows_.size());
    if (is_new) {
      rows_.push_back(
          {.name = std::move(key.first), .module = std::move(key.second)});
      last_sample_.push_back(0);
    }
    return at->second;
  }

  size_t CommandOf(const ProfileSample& sample) {
    std::string name = ksym::Printable(profile_.String(sample.comm));
    if (by_ == OutputOptions::By::kPid)
      name += fmt::format(" ({})", sample.pid);
    if (by_ == OutputOptions::By::kTid)
      name += fmt::format(" ({})", sample.tid);
    const auto [at, is_new] = by_command_.try_emplace(name, commands_.size());
    if (is_new) commands_.push_back({.name = std::move(name)});
    return at->second;
  }

  void Add(const ProfileSample& sample) {
    ++sample_number_;
    const size_t command = CommandOf(sample);
    commands_[command].samples += sample.count;
    bool is_leaf = true;
    for (const CallStackId stack : {sample.kernel, sample.user}) {
      for (const FrameId frame : profile_.Stack(stack)) {
        const size_t row = row_of_frame_[frame];
        Counts& part = parts_[{row, command}];
        if (std::exchange(is_leaf, false)) {
          part.self += sample.count;
          rows_[row].counts.self += sample.count;
        }
        // Once, however often a recursion is in the stack.
        if (std::exchange(last_sample_[row], sample_number_) ==
            sample_number_) {
          continue;
        }
        part.total += sample.count;
        rows_[row].counts.total += sample.count;
      }
    }
  }

  // Each row has the command that spent most there: "cc1plus", "cc1plus +3".
  void NameCommands() {
    struct Most {
      Counts counts;
      size_t command = 0;
      size_t others = 0;
    };
    std::map<size_t, Most> max_of_row;
    for (const auto& [key, counts] : parts_) {
      const auto [row, command] = key;
      const auto [at, is_first] =
          max_of_row.try_emplace(row, Most{counts, command, 0});
      if (is_first) continue;
      ++at->second.others;
      if (counts > at->second.counts) {
        at->second.counts = counts;
        at->second.command = command;
      }
    }
    for (const auto& [row, most] : max_of_row) {
      rows_[row].command = commands_[most.command].name;
      if (most.others > 0) {
        rows_[row].command += fmt::format(" +{}", most.others);
      }
    }
  }

  const Profile& profile_;
  OutputOptions::By by_;
  std::vector<Row> rows_;
  std::vector<Command> commands_;
  std::vector<uint64_t> last_sample_;  // by row: the last that had it
  std::vector<size_t> row_of_frame_;
  std::map<std::pair<std::string, std::string>, size_t> by_name_;
  std::unordered_map<std::string, size_t, ksym::TextHash> by_command_;
  std::map<std::pair<size_t, size_t>, Counts> parts_;  // by row and command
  uint64_t sample_number_ = 0;
};

double Percent(uint64_t part, uint64_t whole) {
  return whole == 0
             ? 0
             : 100 * static_cast<double>(part) / static_cast<double>(whole);
}

// "by command: spin 88.9 %, sh 10.1 %, 2 others 1.0 %"
std::string CommandsLine(const std::vector<Command>& commands, uint64_t all,
                         size_t columns) {
  std::string line = "by command:";
  size_t shown = 0;
  uint64_t rest = all;
  for (const Command& command : commands) {
    if (shown == kMaxCommands) break;
    const std::string part =
        fmt::format("{} {} {:.1f} %", shown == 0 ? "" : ",", command.name,
                    Percent(command.samples, all));
    // Room is left for the others.
    if (shown > 0 && ColumnsOf(line) + ColumnsOf(part) + 24 > columns) break;
    line += part;
    rest -= command.samples;
    ++shown;
  }
  if (shown < commands.size()) {
    line += fmt::format(", {} others {:.1f} %", commands.size() - shown,
                        Percent(rest, all));
  }
  return CutLine(line, columns);
}

struct Widths {
  size_t name = 0;
  size_t module = 0;
  size_t command = 0;
};

// Modules and commands take what they need, up to a part of the line.
Widths WidthsOf(std::span<const Row> rows, size_t columns) {
  Widths widths = {.name = 8, .module = 6, .command = 7};  // of the headings
  for (const Row& row : rows) {
    widths.name = std::max(widths.name, ColumnsOf(row.name));
    widths.module = std::max(widths.module, ColumnsOf(row.module));
    widths.command = std::max(widths.command, ColumnsOf(row.command));
  }
  widths.module = std::min(widths.module, std::max<size_t>(columns / 5, 6));
  widths.command = std::min(widths.command, std::max<size_t>(columns / 6, 7));
  const size_t taken = kNumbers + widths.module + widths.command + 2 * kGap;
  widths.name = std::min(widths.name, columns - std::min(columns, taken));
  return widths;
}

void AppendRow(const Row& row, const Widths& widths, std::string& line) {
  AppendPadded(FitName(row.name, widths.name), widths.name + kGap, line);
  AppendPadded(FitName(row.module, widths.module), widths.module + kGap, line);
  line += FitName(row.command, widths.command);
}

}  // namespace

void WriteOverview(const Profile& profile, const OverviewOptions& options,
                   OutputBuffer& out) {
  Counter counter(profile, options.by);
  const uint64_t all = SamplesOf(profile);
  const std::vector<Row> rows = counter.TakeRows();
  out.text() += CutLine(CaptureLine(profile), options.columns) + '\n';
  if (all == 0) return;
  out.text() += CommandsLine(counter.Commands(), all, options.columns) + '\n';
  const auto shown =
      std::span(rows).first(std::min(rows.size(), options.functions));
  const Widths widths = WidthsOf(shown, options.columns);
  out.text() += "  self   total  ";
  AppendRow({.name = "function", .module = "module", .command = "command"},
            widths, out.text());
  out.text() += '\n';
  for (const Row& row : shown) {
    const double self = Percent(row.counts.self, all);
    const bool is_hot =
        options.colours == Colours::kOn && self >= 100 * kHotShare;
    out.text() += is_hot ? "\x1b[1;31m" : "";
    out.text() += fmt::format("{:5.1f}%  {:5.1f}%  ", self,
                              Percent(row.counts.total, all));
    AppendRow(row, widths, out.text());
    out.text() += is_hot ? "\x1b[0m\n" : "\n";
    out.PassOn();
  }
  if (shown.size() < rows.size()) {
    out.text() +=
        fmt::format("... and {} more functions\n", rows.size() - shown.size());
  }
}

}  // namespace profd
