// SPDX-License-Identifier: Apache-2.0
#include "daemon/oneshot/file_commands.h"

#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cstring>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "daemon/oneshot/common_options.h"
#include "daemon/oneshot/file_inputs.h"
#include "daemon/oneshot/messages.h"
#include "daemon/oneshot/one_shot.h"
#include "daemon/oneshot/report_file.h"
#include "daemon/oneshot/report_target.h"
#include "daemon/oneshot/terminal.h"
#include "daemon/output/difference_page.h"
#include "daemon/output/format.h"
#include "daemon/output/hot_spots.h"
#include "daemon/output/profile_select.h"
#include "daemon/profile/kind_select.h"
#include "ksym/base/caller_rights.h"
#include "ksym/base/printable.h"

namespace profd {
namespace {

using ksym::Fail;
using ksym::Result;
using ksym::Status;

constexpr size_t kDefaultTop = 30;
constexpr std::array<std::string_view, 3> kCommands = {"report", "diff",
                                                       "convert"};

struct Arguments {
  std::string command;
  std::vector<std::string> inputs;
  std::vector<std::string> second_inputs;  // of diff: AFTER
  std::string filter;
  std::string callers;
  std::string value;
  std::string output;
  std::string format;
  std::string by;
  std::string color = "auto";
  size_t top = kDefaultTop;
  bool parked = false;
  bool annotations = false;
  bool delimiter = false;
};

void AddValueOption(CLI::App& command, Arguments& arguments) {
  command
      .add_option("--value", arguments.value,
                  "Which kind of samples, where the profile has several "
                  "(default: the first; of waits the sum of all)")
      ->type_name("KIND");
}

void AddParkedOption(CLI::App& command, Arguments& arguments) {
  command.add_flag("--parked", arguments.parked,
                   "Show the stacks of threads that wait at one place nearly "
                   "all the time, which are one frame else");
}

void AddTableOptions(CLI::App& command, Arguments& arguments) {
  command
      .add_option("--by", arguments.by,
                  "What samples are added up by (default function)")
      ->type_name("function|module|comm|process|line");
  command
      .add_option("--filter", arguments.filter,
                  "Only samples that have a function, or a command, whose name "
                  "matches this extended regular expression")
      ->type_name("REGEX");
  command
      .add_option("--callers", arguments.callers,
                  "What called this function, in place of all functions")
      ->type_name("FUNCTION");
  AddValueOption(command, arguments);
  AddParkedOption(command, arguments);
  command
      .add_option("--top", arguments.top,
                  fmt::format("Rows, 0 for all (default {})", kDefaultTop))
      ->type_name("N");
  command
      .add_option("--color", arguments.color,
                  "Colours: always, never, or auto: on a terminal")
      ->type_name("auto|always|never");
}

void AddReport(CLI::App& app, Arguments& arguments) {
  CLI::App& report = *app.add_subcommand("report",
                                         "Prints what the samples were in, the "
                                         "hottest first, as a table");
  report
      .add_option("FILE", arguments.inputs,
                  "A profile: folded stacks, JSON, pprof, perf script's text "
                  "or a raw capture; - for stdin; a directory for all in it; "
                  "DIRECTORY@FROM..TO for a time of a history; several are "
                  "added up")
      ->required();
  AddTableOptions(report, arguments);
}

void AddDiff(CLI::App& app, Arguments& arguments) {
  CLI::App& diff = *app.add_subcommand(
      "diff", "Prints what changed between two profiles, the most first");
  diff.add_option("BEFORE", arguments.inputs,
                  "A profile or a directory as for report; several with -- in "
                  "front of AFTER")
      ->required();
  diff.add_option("AFTER", arguments.second_inputs, "What is compared with it");
  diff.add_option("-o,--output", arguments.output,
                  "Write a flame graph of the difference, FILE.html")
      ->type_name("FILE");
  AddTableOptions(diff, arguments);
}

void AddConvert(CLI::App& app, Arguments& arguments) {
  CLI::App& convert =
      *app.add_subcommand("convert", "Writes a profile in another format");
  convert
      .add_option(
          "IN", arguments.inputs,
          "A profile or a directory as for report; several are added up")
      ->required();
  AddTargetOptions(convert, arguments.output, arguments.format, "folded");
  convert
      .add_option("--by", arguments.by, "What stacks start with (default comm)")
      ->type_name("comm|pid|tid");
  AddValueOption(convert, arguments);
  AddParkedOption(convert, arguments);
  convert.add_flag("-d,--delimited", arguments.delimiter,
                   "Put a mark between user and kernel frames");
  convert.add_flag("-a,--annotations", arguments.annotations,
                   "Append _[k] to kernel and _[i] to inlined frames (folded)");
}

void AddCommands(CLI::App& app, Arguments& arguments) {
  AddReport(app, arguments);
  AddDiff(app, arguments);
  AddConvert(app, arguments);
}

Status WriteTable(const std::function<void(OutputBuffer&)>& write) {
  auto file = ReportFile::Open("-");
  if (!file) return Fail(std::move(file.error()));
  OutputBuffer out([&](std::string_view piece) { return file->Append(piece); });
  write(out);
  return file->Finish(out.Finish());
}

Status WriteTo(const std::string& path, std::string_view text) {
  auto file = ReportFile::Open(path);
  if (!file) return Fail(std::move(file.error()));
  return file->Finish(file->Append(text));
}

Result<HotSpotTable> TableOf(const Arguments& arguments) {
  HotSpotTable table;
  if (!arguments.by.empty()) {
    const auto kind = ParseSpotKind(arguments.by);
    if (!kind) return Fail(kind.error());
    table.kind = *kind;
  }
  if (!arguments.filter.empty()) {
    auto pattern = NamePattern::Parse(arguments.filter);
    if (!pattern) {
      return Fail(std::move(pattern.error()).WithContext("--filter"));
    }
  }
  table.top = arguments.top;
  if (::isatty(STDOUT_FILENO) != 0) {
    table.columns = TerminalColumns(STDOUT_FILENO);
  }
  if (arguments.command == "diff" && !arguments.output.empty() &&
      FormatOfExtension(arguments.output) != OutputFormat::kFlamegraph) {
    return Fail(ksym::ErrorCode::kInvalid,
                fmt::format("-o {}: a difference is written as a page: end "
                            "its name in .html",
                            arguments.output));
  }
  const bool is_wanted =
      arguments.color == "always" ||
      (arguments.color == "auto" && ::isatty(STDOUT_FILENO) != 0);
  table.colours = is_wanted ? Colours::kOn : Colours::kOff;
  return table;
}

// As a capture would write it in this format: with the kinds of samples that it
// shows, and one frame for threads that are parked.
Result<Profile> LoadShowing(const std::vector<std::string>& paths,
                            const Arguments& arguments,
                            const FormatRow& format) {
  auto profile = LoadProfiles(paths);
  if (!profile) return profile;
  auto shown = ChooseKind(arguments.value, format, *profile);
  if (!shown) {
    return Fail(std::move(shown.error()).WithContext(paths.front()));
  }
  ArrangeParked(arguments.parked ? ParkedStacks::kOpen : ParkedStacks::kFolded,
                format, *profile);
  return profile;
}

// What --value, --filter and --callers leave of the files.
Result<Profile> LoadSelected(const std::vector<std::string>& paths,
                             const Arguments& arguments,
                             const std::optional<NamePattern>& filter) {
  // A table shows what folded stacks do.
  auto profile = LoadShowing(paths, arguments, RowOf(OutputFormat::kFolded));
  if (!profile) return profile;
  KeepFirstKind(*profile);
  const bool had_samples = !profile->samples.empty();
  if (filter) KeepMatching(*filter, *profile);
  if (!arguments.callers.empty()) KeepCallers(arguments.callers, *profile);
  if (had_samples && profile->samples.empty()) {
    PrintMessage(
        fmt::format("warning: {}: no sample matches{}", paths.front(),
                    arguments.callers.empty()
                        ? ""
                        : ": there is no function " + arguments.callers));
  }
  return profile;
}

// --filter was read before.
std::optional<NamePattern> FilterOf(const Arguments& arguments) {
  if (arguments.filter.empty()) return std::nullopt;
  auto pattern = NamePattern::Parse(arguments.filter);
  if (!pattern) return std::nullopt;
  return std::move(*pattern);
}

Status Report(const Arguments& arguments, const HotSpotTable& table) {
  const auto profile =
      LoadSelected(arguments.inputs, arguments, FilterOf(arguments));
  if (!profile) return Fail(profile.error());
  return WriteTable(
      [&](OutputBuffer& out) { WriteHotSpots(*profile, table, out); });
}

Status Diff(const Arguments& arguments, const HotSpotTable& table) {
  const auto filter = FilterOf(arguments);
  const auto before = LoadSelected(arguments.inputs, arguments, filter);
  if (!before) return Fail(before.error());
  const auto after = LoadSelected(arguments.second_inputs, arguments, filter);
  if (!after) return Fail(after.error());
  if (!arguments.output.empty()) {
    return WriteTo(arguments.output,
                   RenderDifferencePage(*before, *after,
                                        {arguments.inputs.front(),
                                         arguments.second_inputs.front()}));
  }
  const Difference difference = Compare(*before, *after, table.kind);
  return WriteTable(
      [&](OutputBuffer& out) { WriteDifference(difference, table, out); });
}

struct Target {
  OutputFormat format = OutputFormat::kFolded;
  OutputOptions options;
};

Result<Target> TargetOf(const Arguments& arguments) {
  Target target;
  const auto format =
      ChooseFormat(arguments.format, arguments.output, target.format);
  if (!format) return Fail(format.error());
  target.format = *format;
  target.options.annotations = arguments.annotations;
  target.options.delimiter = arguments.delimiter;
  if (arguments.by == "pid") {
    target.options.by = OutputOptions::By::kPid;
  } else if (arguments.by == "tid") {
    target.options.by = OutputOptions::By::kTid;
  } else if (!arguments.by.empty() && arguments.by != "comm") {
    return Fail(
        ksym::ErrorCode::kInvalid,
        fmt::format("--by '{}' is none of comm, pid, tid", arguments.by));
  }
  if (auto fit = CheckTerminal(arguments.output, target.format); !fit) {
    return Fail(std::move(fit.error()));
  }
  return target;
}

Status Convert(const Arguments& arguments, const Target& target) {
  const auto profile =
      LoadShowing(arguments.inputs, arguments, RowOf(target.format));
  if (!profile) return Fail(profile.error());
  auto file = ReportFile::Open(arguments.output);
  if (!file) return Fail(std::move(file.error()));
  auto written =
      Write(*profile, target.format, target.options,
            [&](std::string_view piece) { return file->Append(piece); });
  return file->Finish(std::move(written));
}

// Two paths are BEFORE and AFTER; behind "--" are those of AFTER. Throws
// UsageError.
void DecideInputs(Arguments& arguments) {
  if (arguments.color != "auto" && arguments.color != "always" &&
      arguments.color != "never") {
    throw UsageError{fmt::format("--color '{}' is none of auto, always, never",
                                 arguments.color)};
  }
  if (arguments.command != "diff") return;
  if (arguments.second_inputs.empty() && arguments.inputs.size() == 2) {
    arguments.second_inputs = {std::move(arguments.inputs.back())};
    arguments.inputs.pop_back();
  }
  if (!arguments.inputs.empty() && !arguments.second_inputs.empty()) return;
  throw UsageError{
      "diff compares BEFORE and AFTER; with more than two paths put -- in "
      "front of those of AFTER"};
}

int Run(const Arguments& arguments) {
  Status done;
  if (arguments.command == "convert") {
    // Before any file is read, which may take long: wrong arguments are told at
    // once.
    const auto target = TargetOf(arguments);
    if (!target) return ReportUsage(target.error().message());
    done = Convert(arguments, *target);
  } else {
    const auto table = TableOf(arguments);
    if (!table) return ReportUsage(table.error().message());
    done = arguments.command == "report" ? Report(arguments, *table)
                                         : Diff(arguments, *table);
  }
  if (done) return kExitOk;
  PrintMessage(ksym::Printable(done.error().message()));
  return kExitFailure;
}

}  // namespace

std::unique_ptr<CLI::App> FileCommandTable() {
  auto app = std::make_unique<CLI::App>();
  Arguments not_parsed;
  AddCommands(*app, not_parsed);
  return app;
}

std::optional<int> RunFileCommand(int argc, const char* const* argv) {
  if (argc < 2 || std::ranges::find(kCommands, argv[1]) == kCommands.end()) {
    return std::nullopt;
  }
  // It reads what its caller may read, and no more.
  ksym::GiveUpFileCapabilities();
  Arguments arguments;
  arguments.command = argv[1];
  CLI::App app("Works with profiles that are there already.", "ksym-profile");
  AddCommands(app, arguments);
  const char* const* end = argv + argc;
  const char* const* dashes = std::find_if(
      argv, end, [](const char* text) { return std::strcmp(text, "--") == 0; });
  if (arguments.command != "diff") dashes = end;
  const auto status = ParseCommand(app, {argv, dashes}, [&] {
    if (dashes != end) arguments.second_inputs.assign(dashes + 1, end);
    DecideInputs(arguments);
  });
  if (status) return status;
  return Run(arguments);
}

}  // namespace profd
