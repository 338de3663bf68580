// SPDX-License-Identifier: Apache-2.0
#include "daemon/oneshot/history_command.h"

#include <fmt/format.h>
#include <unistd.h>

#include <ctime>
#include <functional>
#include <string>
#include <string_view>
#include <utility>

#include "daemon/history/folder.h"
#include "daemon/oneshot/common_options.h"
#include "daemon/oneshot/messages.h"
#include "daemon/oneshot/one_shot.h"
#include "daemon/oneshot/report_file.h"
#include "daemon/oneshot/report_target.h"
#include "daemon/oneshot/terminal.h"
#include "daemon/oneshot/time_text.h"
#include "daemon/output/difference_page.h"
#include "daemon/output/format.h"
#include "daemon/output/hot_spots.h"
#include "daemon/profile/kind_select.h"
#include "daemon/profile/parked.h"
#include "ksym/base/caller_rights.h"
#include "ksym/base/printable.h"

namespace profd {
namespace {

using ksym::ErrorCode;
using ksym::Fail;
using ksym::Result;
using ksym::Status;

constexpr std::string_view kDefaultHistory = "/var/lib/ksym-profiled/history";
constexpr size_t kDefaultRows = 30;
// Of the profile that is made of a time.
constexpr size_t kMaxRangeBytes = size_t{1} << 30;
constexpr uint64_t kNsOfSecond = 1'000'000'000;

constexpr std::string_view kHistoryExamples = R"(Examples:
  ksym-profile history --from 02:10 --to 02:15          a table of functions
  ksym-profile history --from -1h --unit nginx -o x.html
  ksym-profile history --from 02:10 --to 02:15 \
      --before-from 01:10 --before-to 01:15             what was different
)";

struct HistoryArguments {
  std::string folder{kDefaultHistory};
  std::string from = "-15m";
  std::string to = "now";
  std::string before_from;
  std::string before_to;
  std::string output;
  std::string format;
  std::string by;
  std::string kind;
  size_t top = kDefaultRows;
  bool parked = false;
  history::Selection selection;  // its times are of --from and --to
  std::optional<history::Selection> before;
  std::optional<OutputFormat> target;  // nothing: a table
  HotSpotTable table;
};

void AddTimes(CLI::App& command, HistoryArguments& arguments) {
  command
      .add_option("--from", arguments.from,
                  "When it begins: 02:10, '2026-11-24 02:10', -15m, now, or "
                  "seconds since 1970 (default -15m)")
      ->type_name("TIME");
  command
      .add_option("--to", arguments.to,
                  "When it ends; 02:15 is the next one after --from (default "
                  "now)")
      ->type_name("TIME");
  command
      .add_option("--before-from", arguments.before_from,
                  "Show what changed since the time that begins here, ...")
      ->type_name("TIME");
  command.add_option("--before-to", arguments.before_to, "... and ends here")
      ->type_name("TIME");
}

void AddFilters(CLI::App& command, HistoryArguments& arguments) {
  history::Selection& selection = arguments.selection;
  command
      .add_option("--unit", selection.unit,
                  "Only this systemd unit; .service may be left out")
      ->type_name("UNIT");
  command
      .add_option("--container", selection.container,
                  "Only containers whose id begins so")
      ->type_name("ID");
  command
      .add_option("--command", selection.command, "Only threads of this name")
      ->type_name("NAME");
  command.add_option("--pid", selection.pid, "Only this process")
      ->type_name("PID");
  command
      .add_option("--function", selection.function,
                  "Only stacks with a function that has this in its name")
      ->type_name("TEXT");
  command
      .add_option("--kind", arguments.kind,
                  "Which kind of samples, where there are several (default: "
                  "the first; of waits the sum of all)")
      ->type_name("KIND");
}

CLI::App& AddHistory(CLI::App& app, HistoryArguments& arguments) {
  CLI::App& command = *app.add_subcommand(
      "history", "Shows a time of what ksym-profiled has kept");
  command.add_option(
      "DIRECTORY", arguments.folder,
      fmt::format("Where the history is (default {})", kDefaultHistory));
  AddTimes(command, arguments);
  AddFilters(command, arguments);
  AddTargetOptions(command, arguments.output, arguments.format,
                   "a table of functions");
  command
      .add_option("--by", arguments.by,
                  "What the table adds samples up by (default function)")
      ->type_name("function|module|comm|process");
  command
      .add_option("--top", arguments.top,
                  fmt::format("Rows of the table, 0 for all (default {})",
                              kDefaultRows))
      ->type_name("N");
  command.add_flag("--parked", arguments.parked,
                   "Show the stacks of threads that wait at one place nearly "
                   "all the time, which are one frame else");
  command.footer(std::string(kHistoryExamples));
  return command;
}

// Sets the times of the selection. Throws UsageError.
void DecideTimes(std::string_view from_option, std::string_view from,
                 std::string_view to_option, std::string_view to,
                 uint64_t now_ns, history::Selection& selection) {
  const auto begin = ParseMoment(from, now_ns, std::nullopt);
  if (!begin) {
    throw UsageError{
        fmt::format("{}: {}", from_option, begin.error().message())};
  }
  const auto end = ParseMoment(to, now_ns, *begin);
  if (!end) {
    throw UsageError{fmt::format("{}: {}", to_option, end.error().message())};
  }
  if (*end <= *begin) {
    throw UsageError{
        fmt::format("{} is not before {}", from_option, to_option)};
  }
  selection.from_unix_ns = *begin;
  selection.until_unix_ns = *end;
}

// Throws UsageError.
void DecideHistory(const CLI::App& command, HistoryArguments& arguments) {
  RefuseEmpty(command, {"DIRECTORY", "--from", "--to", "--before-from",
                        "--before-to", "--unit", "--container", "--command",
                        "--function", "--kind", "--output"});
  const auto now = static_cast<uint64_t>(::time(nullptr)) * kNsOfSecond;
  DecideTimes("--from", arguments.from, "--to", arguments.to, now,
              arguments.selection);
  if (arguments.before_from.empty() != arguments.before_to.empty()) {
    throw UsageError{"--before-from and --before-to go together"};
  }
  if (!arguments.before_from.empty()) {
    arguments.before = arguments.selection;
    DecideTimes("--before-from", arguments.before_from, "--before-to",
                arguments.before_to, now, *arguments.before);
  }
  if (!arguments.by.empty()) {
    const auto kind = ParseSpotKind(arguments.by);
    if (!kind) throw UsageError{kind.error().message()};
    if (*kind == SpotKind::kLine) {
      throw UsageError{"--by line: a history has no lines"};
    }
    arguments.table.kind = *kind;
  }
  arguments.table.top = arguments.top;
  if (!arguments.format.empty() || !IsStdout(arguments.output)) {
    const auto format =
        ChooseFormat(arguments.format, arguments.output, OutputFormat::kFolded);
    if (!format) throw UsageError{format.error().message()};
    arguments.target = *format;
    if (auto fit = CheckTerminal(arguments.output, *format); !fit) {
      throw UsageError{fit.error().message()};
    }
    if (arguments.before && *format != OutputFormat::kFlamegraph) {
      throw UsageError{
          "a difference is written as a page: end its name in .html"};
    }
  }
}

std::string LocalTime(uint64_t unix_ns) {
  const auto seconds = static_cast<time_t>(unix_ns / kNsOfSecond);
  tm parts = {};
  char text[64] = "?";
  if (::localtime_r(&seconds, &parts) != nullptr) {
    (void)std::strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S", &parts);
  }
  return text;
}

std::string RangeText(const history::Selection& selection) {
  return fmt::format("{} to {}", LocalTime(selection.from_unix_ns),
                     LocalTime(selection.until_unix_ns));
}

void PrintPrintable(const std::string& text) {
  std::string printable;
  ksym::AppendPrintable(text, printable);
  PrintMessage(printable);
}

// What is known of the time, on stderr: the profile itself may go to stdout.
void SayCoverage(const history::Selection& selection,
                 const history::HistoryAnswer& answer) {
  const Profile& profile = answer.profile;
  for (const std::string& warning : profile.metadata.warnings) {
    PrintPrintable("warning: " + warning);
  }
  const Accounting& accounting = profile.accounting;
  PrintPrintable(fmt::format(
      "{}: {} samples of {} seconds{}{}", RangeText(selection),
      accounting.emitted, profile.metadata.duration_ns / kNsOfSecond,
      accounting.lost() == 0 ? ""
                             : fmt::format(", {} were lost", accounting.lost()),
      answer.coverage.restarts == 0
          ? ""
          : fmt::format(", over {} restarts", answer.coverage.restarts)));
}

// As a capture would write it in this format.
Result<Profile> LoadTime(const HistoryArguments& arguments,
                         const history::Selection& selection,
                         OutputFormat format) {
  auto answer = history::ReadRange(arguments.folder, selection, kMaxRangeBytes);
  if (!answer) return Fail(std::move(answer.error()));
  if (answer->coverage.parts == 0) {
    for (const std::string& warning : answer->profile.metadata.warnings) {
      PrintPrintable("warning: " + warning);
    }
    return Fail(ErrorCode::kNotFound,
                fmt::format("{}: nothing is known of {}", arguments.folder,
                            RangeText(selection)));
  }
  SayCoverage(selection, *answer);
  Profile& profile = answer->profile;
  const FormatRow& row = RowOf(format);
  if (auto chosen = ChooseKind(arguments.kind, row, profile); !chosen) {
    return Fail(std::move(chosen.error()).WithContext("--kind"));
  }
  if (!arguments.parked && !row.marks_parked()) FoldParked(profile);
  return std::move(profile);
}

Status WriteOut(const std::string& path,
                const std::function<Status(ReportFile&)>& write) {
  auto file = ReportFile::Open(path);
  if (!file) return Fail(std::move(file.error()));
  return file->Finish(write(*file));
}

Status WriteRows(const std::function<void(OutputBuffer&)>& write) {
  return WriteOut("-", [&](ReportFile& file) {
    OutputBuffer out(
        [&](std::string_view piece) { return file.Append(piece); });
    write(out);
    return out.Finish();
  });
}

Status ShowTime(const HistoryArguments& arguments) {
  // A table shows what folded stacks do.
  const OutputFormat format = arguments.target.value_or(OutputFormat::kFolded);
  auto profile = LoadTime(arguments, arguments.selection, format);
  if (!profile) return Fail(std::move(profile.error()));
  if (arguments.target) {
    return WriteOut(arguments.output, [&](ReportFile& file) {
      return Write(*profile, format, {},
                   [&](std::string_view piece) { return file.Append(piece); });
    });
  }
  KeepFirstKind(*profile);
  return WriteRows([&](OutputBuffer& out) {
    WriteHotSpots(*profile, arguments.table, out);
  });
}

Status ShowChange(const HistoryArguments& arguments) {
  auto before = LoadTime(arguments, *arguments.before, OutputFormat::kFolded);
  if (!before) return Fail(std::move(before.error()));
  auto after = LoadTime(arguments, arguments.selection, OutputFormat::kFolded);
  if (!after) return Fail(std::move(after.error()));
  KeepFirstKind(*before);
  KeepFirstKind(*after);
  if (arguments.target) {
    const std::string before_name = RangeText(*arguments.before);
    const std::string after_name = RangeText(arguments.selection);
    return WriteOut(arguments.output, [&](ReportFile& file) {
      return file.Append(
          RenderDifferencePage(*before, *after, {before_name, after_name}));
    });
  }
  const Difference difference = Compare(*before, *after, arguments.table.kind);
  return WriteRows([&](OutputBuffer& out) {
    WriteDifference(difference, arguments.table, out);
  });
}

}  // namespace

void AddHistoryCommandTo(CLI::App& app) {
  HistoryArguments not_parsed;
  AddHistory(app, not_parsed);
}

std::optional<int> RunHistoryCommand(int argc, const char* const* argv) {
  if (argc < 2 || std::string_view(argv[1]) != "history") return std::nullopt;
  // It reads what its caller may read, and no more.
  ksym::GiveUpFileCapabilities();
  HistoryArguments arguments;
  CLI::App app("Shows what was sampled before.", "ksym-profile");
  const CLI::App& command = AddHistory(app, arguments);
  const auto status = ParseCommand(app, {argv, static_cast<size_t>(argc)},
                                   [&] { DecideHistory(command, arguments); });
  if (status) return status;
  if (::isatty(STDOUT_FILENO) != 0) {
    arguments.table.columns = TerminalColumns(STDOUT_FILENO);
    arguments.table.colours = Colours::kOn;
  }
  const Status done =
      arguments.before ? ShowChange(arguments) : ShowTime(arguments);
  if (done) return kExitOk;
  PrintPrintable(done.error().message());
  return kExitFailure;
}

}  // namespace profd
