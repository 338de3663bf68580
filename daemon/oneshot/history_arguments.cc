// SPDX-License-Identifier: Apache-2.0
#include "daemon/oneshot/history_arguments.h"

#include <fmt/format.h>

#include <ctime>

#include "daemon/base/now_ns.h"
#include "daemon/oneshot/common_options.h"
#include "daemon/oneshot/one_shot.h"
#include "daemon/oneshot/report_target.h"
#include "daemon/oneshot/time_text.h"

namespace profd {
namespace {

constexpr std::string_view kHistoryExamples = R"(Examples:
  ksym-profile history --from 02:10 --to 02:15          a table of functions
  ksym-profile history --from -1h --unit nginx -o x.html
  ksym-profile history --from -1d --series --by unit    when was it?
  ksym-profile history --from 02:10 --to 02:15 \
      --before-from 01:10 --before-to 01:15             what was different
)";

void AddViews(CLI::App& command, HistoryArguments& arguments) {
  CLI::Option* list = command.add_flag(
      "--list", arguments.list,
      "List the files: time, size, samples, losses, holes, restarts");
  CLI::Option* functions = command.add_flag(
      "--functions", arguments.functions,
      "CPUs that each function used, of any length of time; as JSON with "
      "--format json");
  CLI::Option* series =
      command.add_flag("--series", arguments.series,
                       "CPUs over time; with --by of each of the largest; as "
                       "JSON with --format json");
  list->excludes(functions)->excludes(series);
  functions->excludes(series);
  command
      .add_option("--step", arguments.step_s,
                  "Length of a step of --series in seconds (default: some 60 "
                  "steps)")
      ->type_name("N")
      ->check(CLI::Range(1, 86'400));
}

void AddTimes(CLI::App& command, HistoryArguments& arguments) {
  command
      .add_option("--from", arguments.from,
                  "When it begins: 02:10, '2026-11-24 02:10', -15m, now, or "
                  "seconds since 1970; seconds may have thousandths (default "
                  "-15m)")
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
                  "Only containers of this name, or whose id begins so")
      ->type_name("NAME");
  command
      .add_option("--pod", selection.pod,
                  "Only Kubernetes pods of this name, namespace/name, or "
                  "whose uid begins so")
      ->type_name("NAME");
  command
      .add_option("--command", selection.command, "Only threads of this name")
      ->type_name("NAME");
  command.add_option("--pid", selection.pid, "Only this process")
      ->type_name("PID");
  command
      .add_option("--function", selection.function,
                  "Only stacks with a function that has this in its name; "
                  "=NAME: that is called so")
      ->type_name("TEXT");
  command
      .add_option("--kind", arguments.kind,
                  "Which kind of samples, where there are several (default: "
                  "the first; of waits the sum of all)")
      ->type_name("KIND");
}

}  // namespace

CLI::App& AddHistory(CLI::App& app, HistoryArguments& arguments) {
  CLI::App& command = *app.add_subcommand(
      "history", "Shows a time of what ksym-profiled has kept");
  command.add_option(
      "DIRECTORY", arguments.directory,
      fmt::format("Where the history is (default {})", kDefaultHistory));
  AddTimes(command, arguments);
  AddFilters(command, arguments);
  AddViews(command, arguments);
  AddTargetOptions(command, arguments.output, arguments.format,
                   "a table of functions");
  command
      .add_option("--by", arguments.by,
                  "What the table adds samples up by (default function): "
                  "function, module, comm or process; of --series unit, "
                  "container, pod, comm or process")
      ->type_name("KIND");
  command
      .add_option("--top", arguments.top,
                  fmt::format("Rows of the table, 0 for all (default {})",
                              kDefaultHistoryRows))
      ->type_name("N");
  command.add_flag("--parked", arguments.parked,
                   "Show the stacks of threads that wait at one place nearly "
                   "all the time, which are one frame else");
  command.footer(std::string(kHistoryExamples));
  return command;
}

namespace {

// An option that says when, and its text.
struct TimeOption {
  std::string_view option;
  std::string_view text;
};

// Sets the times of the selection. Throws UsageError.
void DecideTimes(const TimeOption& from, const TimeOption& to, uint64_t now_ns,
                 history::Selection& selection) {
  const auto begin = ParseMoment(from.text, now_ns, std::nullopt);
  if (!begin) {
    throw UsageError{
        fmt::format("{}: {}", from.option, begin.error().message())};
  }
  const auto end = ParseMoment(to.text, now_ns, *begin);
  if (!end) {
    throw UsageError{fmt::format("{}: {}", to.option, end.error().message())};
  }
  if (*end <= *begin) {
    throw UsageError{
        fmt::format("{} is not before {}", from.option, to.option)};
  }
  selection.from_unix_ns = *begin;
  selection.until_unix_ns = *end;
  selection.by_slice = HasThousandths(from.text) || HasThousandths(to.text);
}

// Throws UsageError.
void DecideTable(const CLI::App& command, HistoryArguments& arguments) {
  if (command.count("--step") > 0) throw UsageError{"--step is of --series"};
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

history::TimelineBy ParseTimelineBy(std::string_view text) {
  if (text.empty()) return history::TimelineBy::kAll;
  if (text == "unit") return history::TimelineBy::kUnit;
  if (text == "container") return history::TimelineBy::kContainer;
  if (text == "pod") return history::TimelineBy::kPod;
  if (text == "comm") return history::TimelineBy::kCommand;
  if (text == "process") return history::TimelineBy::kProcess;
  throw UsageError{
      fmt::format("--by: '{}' is none of unit, container, pod, comm, process, "
                  "which --series has",
                  text)};
}

// For --list, --functions and --series. Throws UsageError.
void DecideView(const CLI::App& command, HistoryArguments& arguments) {
  if (arguments.before) {
    throw UsageError{"--before-from is of tables and pages"};
  }
  if (command.count("--step") > 0 && !arguments.series) {
    throw UsageError{"--step is of --series"};
  }
  if (!arguments.by.empty() && !arguments.series) {
    throw UsageError{"--by is of --series and of tables"};
  }
  arguments.series_by = ParseTimelineBy(arguments.by);
  if (!arguments.format.empty() && arguments.format != "json" &&
      arguments.format != "text") {
    throw UsageError{"--format: text and json are what this is written in"};
  }
  arguments.is_json =
      arguments.format == "json" ||
      (arguments.format.empty() && arguments.output.ends_with(".json"));
  arguments.selection.kind = arguments.kind;
  if (arguments.list && command.count("--from") == 0) {
    // All of it.
    arguments.selection.from_unix_ns = 0;
  }
}

}  // namespace

void DecideHistory(const CLI::App& command, HistoryArguments& arguments) {
  RefuseEmpty(command, {"DIRECTORY", "--from", "--to", "--before-from",
                        "--before-to", "--unit", "--container", "--pod",
                        "--command", "--function", "--kind", "--output"});
  const auto now = static_cast<uint64_t>(::time(nullptr)) * kNsPerSecond;
  DecideTimes({"--from", arguments.from}, {"--to", arguments.to}, now,
              arguments.selection);
  if (arguments.before_from.empty() != arguments.before_to.empty()) {
    throw UsageError{"--before-from and --before-to go together"};
  }
  if (!arguments.before_from.empty()) {
    arguments.before = arguments.selection;
    DecideTimes({"--before-from", arguments.before_from},
                {"--before-to", arguments.before_to}, now, *arguments.before);
  }
  if (arguments.is_view()) {
    DecideView(command, arguments);
  } else {
    DecideTable(command, arguments);
  }
}

}  // namespace profd
