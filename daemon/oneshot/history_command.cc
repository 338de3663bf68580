// SPDX-License-Identifier: Apache-2.0
#include "daemon/oneshot/history_command.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <functional>
#include <string>
#include <string_view>
#include <utility>

#include "daemon/base/now_ns.h"
#include "daemon/history/queries.h"
#include "daemon/history/query_json.h"
#include "daemon/oneshot/common_options.h"
#include "daemon/oneshot/history_arguments.h"
#include "daemon/oneshot/history_views.h"
#include "daemon/oneshot/messages.h"
#include "daemon/oneshot/one_shot.h"
#include "daemon/oneshot/report_file.h"
#include "daemon/oneshot/terminal.h"
#include "daemon/oneshot/time_text.h"
#include "daemon/output/difference_page.h"
#include "daemon/output/format.h"
#include "daemon/output/hot_spots.h"
#include "daemon/profile/kind_select.h"
#include "ksym/base/caller_rights.h"
#include "ksym/base/printable.h"

namespace profd {
namespace {

using ksym::ErrorCode;
using ksym::Fail;
using ksym::Result;
using ksym::Status;

// The profile that is made of a time.
constexpr size_t kMaxRangeBytes = size_t{1} << 30;

std::string RangeText(const history::Selection& selection) {
  const auto text = selection.by_slice ? &ExactLocalTimeText : &LocalTimeText;
  return fmt::format("{} to {}", text(selection.from_unix_ns),
                     text(selection.until_unix_ns));
}

std::string NothingKnownOf(const std::string& directory,
                           const history::Selection& selection) {
  return fmt::format("{}: nothing is known of {}{}", directory,
                     RangeText(selection),
                     selection.by_slice ? history::kNoSlicesKnown : "");
}

// Says what is known of the time, on stderr: the profile itself may go to
// stdout.
void SayCoverage(const history::Selection& selection,
                 const history::HistoryAnswer& answer) {
  const Profile& profile = answer.profile;
  for (const std::string& warning : profile.metadata.warnings) {
    PrintMessage(ksym::Printable("warning: " + warning));
  }
  const Accounting& accounting = profile.accounting;
  PrintMessage(ksym::Printable(fmt::format(
      "{}: {} samples of {} seconds{}{}", RangeText(selection),
      accounting.emitted,
      selection.by_slice
          ? fmt::format("{:.2f}",
                        static_cast<double>(profile.metadata.duration_ns) /
                            kNsPerSecond)
          : fmt::format("{}", profile.metadata.duration_ns / kNsPerSecond),
      accounting.lost() == 0 ? ""
                             : fmt::format(", {} were lost", accounting.lost()),
      answer.coverage.restarts == 0
          ? ""
          : fmt::format(", over {} restarts", answer.coverage.restarts))));
}

// As a capture would write it in this format.
Result<Profile> LoadTime(const HistoryArguments& arguments,
                         const history::Selection& selection,
                         OutputFormat format) {
  auto answer = history::ReadRange(arguments.directory, selection,
                                   {.max_bytes = kMaxRangeBytes});
  if (!answer) return Fail(std::move(answer.error()));
  if (answer->coverage.parts == 0) {
    for (const std::string& warning : answer->profile.metadata.warnings) {
      PrintMessage(ksym::Printable("warning: " + warning));
    }
    return Fail(ErrorCode::kNotFound,
                NothingKnownOf(arguments.directory, selection));
  }
  SayCoverage(selection, *answer);
  Profile& profile = answer->profile;
  const FormatRow& row = RowOf(format);
  if (auto chosen = ChooseKind(arguments.kind, row, profile); !chosen) {
    return Fail(std::move(chosen.error()).WithContext("--kind"));
  }
  ArrangeParked(arguments.parked ? ParkedStacks::kOpen : ParkedStacks::kFolded,
                row, profile);
  return std::move(profile);
}

Status WriteOut(const std::string& path,
                const std::function<Status(ReportFile&)>& write) {
  auto file = ReportFile::Open(path);
  if (!file) return Fail(std::move(file.error()));
  return file->Finish(write(*file));
}

Status WriteRows(const std::string& path,
                 const std::function<void(OutputBuffer&)>& write) {
  return WriteOut(path, [&](ReportFile& file) {
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
  return WriteRows("-", [&](OutputBuffer& out) {
    WriteHotSpots(*profile, arguments.table, out);
  });
}

Status ShowChange(const HistoryArguments& arguments,
                  const history::Selection& earlier) {
  auto before = LoadTime(arguments, earlier, OutputFormat::kFolded);
  if (!before) return Fail(std::move(before.error()));
  auto after = LoadTime(arguments, arguments.selection, OutputFormat::kFolded);
  if (!after) return Fail(std::move(after.error()));
  KeepFirstKind(*before);
  KeepFirstKind(*after);
  if (arguments.target) {
    const std::string before_name = RangeText(earlier);
    const std::string after_name = RangeText(arguments.selection);
    return WriteOut(arguments.output, [&](ReportFile& file) {
      return file.Append(
          RenderDifferencePage(*before, *after, {before_name, after_name}));
    });
  }
  const Difference difference = Compare(*before, *after, arguments.table.kind);
  return WriteRows("-", [&](OutputBuffer& out) {
    WriteDifference(difference, arguments.table, out);
  });
}

// Where stacks matter: sums are the same.
void SayThinning(const history::FilesRead& read) {
  if (const std::string text = TextOfThinning(read); !text.empty()) {
    PrintMessage("warning: " + text);
  }
}

// The warnings of a view, on stderr.
void SayWarnings(const history::RangeCoverage& coverage,
                 const history::FilesRead& read) {
  for (const std::string& text : TextsOf(coverage)) {
    PrintMessage(ksym::Printable("warning: " + text));
  }
  for (const std::string& text : read.warnings) {
    PrintMessage(ksym::Printable("warning: " + text));
  }
}

Status NothingKnown(const HistoryArguments& arguments) {
  return Fail(ErrorCode::kNotFound,
              NothingKnownOf(arguments.directory, arguments.selection));
}

// A length of time that people reckon with, so that there are at most so many
// of them; but for days all divide the next one.
uint64_t NiceStep(uint64_t seconds, uint64_t steps) {
  for (const uint64_t step :
       {1, 2, 5, 10, 30, 60, 300, 600, 1800, 3600, 21600, 86400}) {
    if (seconds <= step * steps) return step;
  }
  return std::max<uint64_t>(86'400, seconds / steps + 1);
}

history::TimelineRequest SeriesRequest(const HistoryArguments& arguments) {
  constexpr uint64_t kStepsOfScreen = 60;
  const history::Selection& selection = arguments.selection;
  const uint64_t seconds =
      (selection.until_unix_ns - selection.from_unix_ns) / kNsPerSecond;
  const uint64_t step = arguments.step_s != 0
                            ? arguments.step_s
                            : NiceStep(seconds, kStepsOfScreen);
  return {.selection = selection,
          .step_ns = step * kNsPerSecond,
          .by = arguments.series_by,
          .rows = std::clamp<size_t>(arguments.top, 1,
                                     history::TimelineAdder::kMaxTimelineRows)};
}

Status ShowSeries(const HistoryArguments& arguments,
                  const history::QueryBounds& bounds) {
  const auto answer = history::ReadTimeline(arguments.directory,
                                            SeriesRequest(arguments), bounds);
  if (!answer) return Fail(answer.error());
  SayWarnings(answer->line.coverage, answer->read);
  if (!arguments.selection.function.empty()) SayThinning(answer->read);
  if (answer->line.coverage.parts == 0) return NothingKnown(arguments);
  return WriteRows(arguments.output, [&](OutputBuffer& out) {
    if (arguments.is_json) {
      out.Write(RenderTimelineJson(*answer));
    } else {
      WriteTimeline(answer->line, arguments.series_by, arguments.table.columns,
                    out);
    }
  });
}

Status ShowFunctions(const HistoryArguments& arguments,
                     const history::QueryBounds& bounds) {
  const auto answer =
      history::ReadFunctions(arguments.directory, arguments.selection, bounds);
  if (!answer) return Fail(answer.error());
  SayWarnings(answer->table.coverage, answer->read);
  SayThinning(answer->read);
  if (answer->table.coverage.parts == 0) return NothingKnown(arguments);
  return WriteRows(arguments.output, [&](OutputBuffer& out) {
    if (arguments.is_json) {
      out.Write(RenderFunctionsJson(*answer, arguments.top));
    } else {
      WriteFunctions(answer->table, arguments.top, arguments.table.columns,
                     out);
    }
  });
}

Status ShowListing(const HistoryArguments& arguments,
                   const history::QueryBounds& bounds) {
  const auto answer =
      history::ReadListing(arguments.directory, arguments.selection, bounds);
  if (!answer) return Fail(answer.error());
  SayWarnings({}, answer->read);
  return WriteRows(arguments.output, [&](OutputBuffer& out) {
    if (arguments.is_json) {
      out.Write(RenderListingJson(*answer));
    } else {
      WriteListing(*answer, out);
    }
  });
}

Status ShowWhatIsAsked(const HistoryArguments& arguments) {
  const history::QueryBounds bounds = {.max_bytes = kMaxRangeBytes};
  if (arguments.list) return ShowListing(arguments, bounds);
  if (arguments.functions) return ShowFunctions(arguments, bounds);
  if (arguments.series) return ShowSeries(arguments, bounds);
  return arguments.before ? ShowChange(arguments, *arguments.before)
                          : ShowTime(arguments);
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
  const Status done = ShowWhatIsAsked(arguments);
  if (done) return kExitOk;
  PrintMessage(ksym::Printable(done.error().message()));
  return kExitFailure;
}

}  // namespace profd
