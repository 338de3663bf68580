#include "daemon/oneshot/file_commands.h"

#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cerrno>
#include <functional>
#include <string>
#include <string_view>
#include <utility>

#include "daemon/input/profile_input.h"
#include "daemon/oneshot/messages.h"
#include "daemon/oneshot/one_shot.h"
#include "daemon/oneshot/report_file.h"
#include "daemon/output/difference_page.h"
#include "daemon/output/format.h"
#include "daemon/output/hot_spots.h"
#include "daemon/profile/kernel_names.h"
#include "daemon/profile/raw_file.h"
#include "daemon/profile/resolve.h"
#include "ksym/base/caller_rights.h"
#include "ksym/base/file.h"
#include "ksym/base/printable.h"

namespace profd {
namespace {

using ksym::Fail;
using ksym::Result;
using ksym::Status;

constexpr size_t kMaxInputBytes = size_t{1} << 31;
constexpr size_t kDefaultTop = 30;
constexpr std::array<std::string_view, 3> kCommands = {"report", "diff",
                                                       "convert"};

struct Arguments {
  std::string command;
  std::string input;
  std::string second_input;  // of diff
  std::string output;
  std::string format;
  std::string by;
  std::string color = "auto";
  size_t top = kDefaultTop;
  bool annotations = false;
  bool delimiter = false;
};

void AddTableOptions(CLI::App& command, Arguments& arguments) {
  command
      .add_option("--by", arguments.by,
                  "What samples are added up by (default function)")
      ->type_name("function|module|process|line");
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
      .add_option("FILE", arguments.input,
                  "A profile: folded stacks, JSON, pprof, perf script's text "
                  "or a raw capture; - for stdin")
      ->required();
  AddTableOptions(report, arguments);
}

void AddDiff(CLI::App& app, Arguments& arguments) {
  CLI::App& diff = *app.add_subcommand(
      "diff", "Prints what changed between two profiles, the most first");
  diff.add_option("BEFORE", arguments.input, "A profile as for report")
      ->required();
  diff.add_option("AFTER", arguments.second_input, "Another one")->required();
  diff.add_option("-o,--output", arguments.output,
                  "Write a flame graph of the difference, FILE.html")
      ->type_name("FILE");
  AddTableOptions(diff, arguments);
}

void AddConvert(CLI::App& app, Arguments& arguments) {
  CLI::App& convert =
      *app.add_subcommand("convert", "Writes a profile in another format");
  convert.add_option("IN", arguments.input, "A profile as for report")
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

// A raw capture has no names yet.
Result<Profile> NameCapture(std::string bytes) {
  auto capture = ReadRawCapture(std::move(bytes));
  if (!capture) return Fail(std::move(capture.error()));
  const KernelNames kernel = KernelNames::OfCapture(*capture);
  ksym::SymbolizerOptions options;
  options.files = ksym::SymbolizerOptions::Files::kOfHost;
  options.vdso_image = capture->vdso_image;
  ksym::Symbolizer symbolizer(std::move(options));
  SymbolizerNames names(symbolizer);
  Resolver resolver({});
  UseKernelNames(kernel, resolver);
  ProfileBuilder builder;
  resolver.Add(capture->profile, names, builder);
  CaptureMetadata metadata = capture->profile.metadata;
  if (!kernel.warning().empty()) metadata.warnings.push_back(kernel.warning());
  return std::move(builder).Finish(std::move(metadata));
}

Result<std::string> ReadInput(const std::string& path) {
  if (path == "-") return ksym::ReadAll(STDIN_FILENO, kMaxInputBytes);
  const auto file = ksym::OpenInput(path);
  if (!file) return Fail(file.error());
  auto bytes = ksym::ReadAll(file->get(), kMaxInputBytes);
  if (!bytes) return Fail(std::move(bytes.error()).WithContext(path));
  return bytes;
}

// Says the profile's warnings, with the file that they are about.
Result<Profile> LoadProfile(const std::string& path) {
  auto bytes = ReadInput(path);
  if (!bytes) return Fail(bytes.error());
  auto profile = IsRawCapture(*bytes) ? NameCapture(std::move(*bytes))
                                      : ReadProfile(*bytes);
  if (!profile) {
    return Fail(std::move(profile.error())
                    .WithContext(path == "-" ? "standard input" : path));
  }
  for (const std::string& warning : profile->metadata.warnings) {
    PrintMessage(fmt::format("warning: {}: {}", path, warning));
  }
  return profile;
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
  table.top = arguments.top;
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

Status Report(const Arguments& arguments, const HotSpotTable& table) {
  const auto profile = LoadProfile(arguments.input);
  if (!profile) return Fail(profile.error());
  return WriteTable(
      [&](OutputBuffer& out) { WriteHotSpots(*profile, table, out); });
}

Status Diff(const Arguments& arguments, const HotSpotTable& table) {
  const auto before = LoadProfile(arguments.input);
  if (!before) return Fail(before.error());
  const auto after = LoadProfile(arguments.second_input);
  if (!after) return Fail(after.error());
  if (!arguments.output.empty()) {
    return WriteTo(
        arguments.output,
        RenderDifferencePage(*before, *after,
                             {arguments.input, arguments.second_input}));
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
  const auto profile = LoadProfile(arguments.input);
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
  try {
    app.parse(argc, argv);
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
  return Run(arguments);
}

}  // namespace profd
