// SPDX-License-Identifier: Apache-2.0
#include "daemon/oneshot/file_commands.h"

#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "daemon/oneshot/file_inputs.h"
#include "daemon/oneshot/messages.h"
#include "daemon/oneshot/one_shot.h"
#include "daemon/oneshot/report_file.h"
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
  bool annotations = false;
  bool delimiter = false;
};

void AddValueOption(CLI::App& command, Arguments& arguments) {
  command
      .add_option("--value", arguments.value,
                  "Which kind of samples, where the profile has several "
                  "(default: the first)")
      ->type_name("KIND");
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
                  "several are added up")
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
  convert
      .add_option("-o,--output", arguments.output,
                  "Write to FILE, in the format that its extension names; "
                  "else to stdout")
      ->type_name("FILE");
  convert
      .add_option("--format", arguments.format,
                  "The format, whatever FILE is called (default folded)")
      ->type_name(FormatChoices());
  convert
      .add_option("--by", arguments.by, "What stacks start with (default comm)")
      ->type_name("comm|pid|tid");
  AddValueOption(convert, arguments);
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

// A reader that went away, such as `head`, is no failure.
Status ForgiveClosedPipe(Status status) {
  if (!status && status.error().sys_errno() == EPIPE) return {};
  return status;
}

Status WriteTable(const std::function<void(OutputBuffer&)>& write) {
  auto file = ReportFile::Open("-");
  if (!file) return Fail(std::move(file.error()));
  OutputBuffer out([&](std::string_view piece) { return file->Append(piece); });
  write(out);
  auto written = out.Finish();
  if (written) written = file->Commit();
  return ForgiveClosedPipe(std::move(written));
}

Status WriteTo(const std::string& path, std::string_view text) {
  auto file = ReportFile::Open(path);
  if (!file) return Fail(std::move(file.error()));
  auto written = file->Append(text);
  if (written) written = file->Commit();
  return ForgiveClosedPipe(std::move(written));
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

// With the kind that --value names in front.
Result<Profile> LoadShowing(const std::vector<std::string>& paths,
                            const Arguments& arguments) {
  auto profile = LoadProfiles(paths);
  if (!profile) return profile;
  auto shown = ShowKind(arguments.value, *profile);
  if (!shown) {
    return Fail(std::move(shown.error()).WithContext(paths.front()));
  }
  return profile;
}

// What --value, --filter and --callers leave of the files.
Result<Profile> LoadSelected(const std::vector<std::string>& paths,
                             const Arguments& arguments,
                             const std::optional<NamePattern>& filter) {
  auto profile = LoadShowing(paths, arguments);
  if (!profile) return profile;
  if (arguments.value.empty()) SumThreadStates(*profile);
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
  if (!arguments.format.empty()) {
    const auto format = ParseOutputFormat(arguments.format);
    if (!format) return Fail(format.error());
    target.format = *format;
  } else if (const auto format = FormatOfExtension(arguments.output)) {
    target.format = *format;
  } else if (!arguments.output.empty() && arguments.output != "-") {
    return Fail(ksym::ErrorCode::kInvalid,
                fmt::format("-o {}: its name does not say the format: give "
                            "--format",
                            arguments.output));
  }
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
  const bool on_stdout = arguments.output.empty() || arguments.output == "-";
  const FormatRow& format = RowOf(target.format);
  if (!format.is_text && on_stdout && ::isatty(STDOUT_FILENO) != 0) {
    return Fail(ksym::ErrorCode::kInvalid,
                fmt::format("stdout is a terminal and {} is not text: give "
                            "-o FILE",
                            format.name));
  }
  return target;
}

Status Convert(const Arguments& arguments, const Target& target) {
  const auto profile = LoadShowing(arguments.inputs, arguments);
  if (!profile) return Fail(profile.error());
  auto file = ReportFile::Open(arguments.output);
  if (!file) return Fail(std::move(file.error()));
  auto written =
      Write(*profile, target.format, target.options,
            [&](std::string_view piece) { return file->Append(piece); });
  if (written) written = file->Commit();
  return ForgiveClosedPipe(std::move(written));
}

int ExitWith(const ksym::Error& error, int status) {
  std::string printable;
  ksym::AppendPrintable(error.message(), printable);
  if (status == kExitUsage) printable += " (see --help)";
  PrintMessage(printable);
  return status;
}

// Two paths are BEFORE and AFTER; behind "--" are those of AFTER.
Status SplitInputs(Arguments& arguments) {
  if (arguments.command != "diff") return {};
  if (arguments.second_inputs.empty() && arguments.inputs.size() == 2) {
    arguments.second_inputs = {std::move(arguments.inputs.back())};
    arguments.inputs.pop_back();
  }
  if (!arguments.inputs.empty() && !arguments.second_inputs.empty()) return {};
  return Fail(ksym::ErrorCode::kInvalid,
              "diff compares BEFORE and AFTER; with more than two paths put -- "
              "in front of those of AFTER");
}

int Run(const Arguments& arguments) {
  Status done;
  if (arguments.command == "convert") {
    const auto target = TargetOf(arguments);
    if (!target) return ExitWith(target.error(), kExitUsage);
    done = Convert(arguments, *target);
  } else {
    const auto table = TableOf(arguments);
    if (!table) return ExitWith(table.error(), kExitUsage);
    done = arguments.command == "report" ? Report(arguments, *table)
                                         : Diff(arguments, *table);
  }
  return done ? kExitOk : ExitWith(done.error(), kExitFailure);
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
  ksym::GiveUpFileCapabilities();
  Arguments arguments;
  arguments.command = argv[1];
  CLI::App app("Works with profiles that are there already.", "ksym-profile");
  AddCommands(app, arguments);
  const char* const* end = argv + argc;
  const char* const* dashes = std::find_if(
      argv, end, [](const char* text) { return std::strcmp(text, "--") == 0; });
  if (arguments.command != "diff") dashes = end;
  try {
    app.parse(static_cast<int>(dashes - argv), argv);
    if (dashes != end) arguments.second_inputs.assign(dashes + 1, end);
  } catch (const CLI::CallForHelp&) {
    const Status printed =
        WriteTable([&](OutputBuffer& out) { out.text() += app.help(); });
    return printed ? kExitOk : kExitFailure;
  } catch (const CLI::ParseError& error) {
    return ExitWith(ksym::Error(ksym::ErrorCode::kInvalid, error.what()),
                    kExitUsage);
  }
  if (arguments.color != "auto" && arguments.color != "always" &&
      arguments.color != "never") {
    return ExitWith(
        ksym::Error(ksym::ErrorCode::kInvalid,
                    fmt::format("--color '{}' is none of auto, always, never",
                                arguments.color)),
        kExitUsage);
  }
  if (auto split = SplitInputs(arguments); !split) {
    return ExitWith(split.error(), kExitUsage);
  }
  return Run(arguments);
}

}  // namespace profd
