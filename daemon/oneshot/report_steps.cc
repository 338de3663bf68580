// SPDX-License-Identifier: Apache-2.0
#include "daemon/oneshot/report_steps.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "daemon/base/open_files.h"
#include "daemon/base/table_memory.h"
#include "daemon/oneshot/one_shot.h"
#include "daemon/oneshot/open_page.h"
#include "daemon/oneshot/terminal.h"
#include "daemon/output/format.h"
#include "daemon/output/markup.h"
#include "daemon/output/overview.h"
#include "daemon/profile/kind_select.h"

namespace profd {
namespace {

using ksym::Status;

// Columns of a table; what is narrower wraps.
constexpr size_t kMinColumns = 40;

// At a terminal nobody reads folded stacks.
bool ShowsTable(const ProfileOptions& options) {
  return options.is_format_open && !options.markup &&
         ::isatty(STDOUT_FILENO) != 0;
}

Status WriteTable(const Profile& profile, const ProfileOptions& options,
                  ReportFile& file) {
  OutputBuffer out([&](std::string_view piece) { return file.Append(piece); });
  WriteOverview(
      profile,
      {.columns = std::max(TerminalColumns(STDOUT_FILENO), kMinColumns),
       .by = options.output.by,
       .colours = Colours::kOn},
      out);
  out.text() +=
      "For a flame graph add -o cpu.html --open, for folded stacks -f.\n";
  return file.Finish(out.Finish());
}

// How to see where threads are parked, if the report does not show it.
std::string_view WhereParked(const ProfileOptions& options,
                             const FormatRow& format) {
  if (options.parked || options.markup) return {};
  switch (format.parked) {
    case FormatParked::kOneFrame:
      return "; --parked shows where";
    case FormatParked::kBelow:
      return "; a click on [parked] shows where, and so does --parked";
    case FormatParked::kMarked:
      break;
  }
  return {};
}

}  // namespace

ksym::SymbolizerOptions MakeSymbolizerOptions(
    const ProfileOptions& options, ksym::SymbolizerOptions::Files files,
    std::string vdso_image) {
  ksym::SymbolizerOptions made;
  made.demangle = options.demangle ? ksym::SymbolizerOptions::Demangle::kOn
                                   : ksym::SymbolizerOptions::Demangle::kOff;
  made.files = files;
  made.opener = options.capture.opener;
  // A capture raises the limit to what is allowed.
  made.max_open_files = MaxMappedFiles(
      files == ksym::SymbolizerOptions::Files::kOfProcess ? LimitOf::kHard
                                                          : LimitOf::kSoft);
  made.cache_bytes = options.symbol_cache_bytes;
  made.table_room = TableMemory::OfProcess();
  made.vdso_image = std::move(vdso_image);
  return made;
}

ResolveOptions MakeResolveOptions(const ProfileOptions& options) {
  ResolveOptions made;
  if (options.output.addresses) {
    made.addresses = ResolveOptions::Addresses::kKeep;
  }
  if (options.inlines || options.lines) {
    made.kernel_offsets = ResolveOptions::KernelOffsets::kKeep;
  }
  if (options.runtime_frames == RuntimeFrames::kAll) {
    made.runtime_calls = ResolveOptions::RuntimeCalls::kKeep;
  }
  if (options.lines) made.runtime_lines = RuntimeLines::kShow;
  if (!options.demangle) {
    made.demangle = ksym::SymbolizerOptions::Demangle::kOff;
  }
  return made;
}

std::string ShowParked(std::span<const ThreadLife> lives,
                       const ProfileOptions& options, Profile& profile) {
  if (!AreThreadStates(profile.metadata.kinds)) return {};
  const ParkedTime parked = MarkParked(lives, profile);
  const FormatRow& format = RowOf(options.format);
  if (!options.markup) {
    ArrangeParked(options.parked ? ParkedStacks::kOpen : ParkedStacks::kFolded,
                  format, profile);
  }
  // Threads were told apart to find the parked ones; stacks of several are one
  // from here on.
  if (options.output.by != OutputOptions::By::kTid) {
    for (ProfileSample& sample : profile.samples) sample.tid = 0;
  }
  if (parked.threads == 0) return {};
  return fmt::format(
      "parked: {} {} waited {:.3f} s, each at one place for more than 90 % of "
      "its life{}",
      parked.threads, parked.threads == 1 ? "thread" : "threads",
      static_cast<double>(parked.ns) / 1e9, WhereParked(options, format));
}

Status WriteReport(const Profile& profile, const ProfileOptions& options,
                   ReportFile& file) {
  if (ShowsTable(options)) {
    if (!HasSeveralValues(profile)) return WriteTable(profile, options, file);
    Profile first = profile;
    KeepFirstKind(first);
    return WriteTable(first, options, file);
  }
  auto written =
      Write(profile, options.format, options.output,
            [&](std::string_view piece) { return file.Append(piece); });
  return file.Finish(std::move(written));
}

Status WriteMarkupReport(const RawCapture& capture,
                         const ProfileOptions& options, ReportFile& file) {
  const auto kind = PlaceOfKind(options.value, capture.profile.metadata.kinds);
  if (!kind) return ksym::Fail(kind.error());
  OutputBuffer out([&](std::string_view piece) { return file.Append(piece); });
  WriteMarkup(capture, *kind, options.output.by, out);
  return file.Finish(out.Finish());
}

void SayWritten(const ProfileOptions& options, const ReportFile& report,
                Progress& progress) {
  if (report.is_regular()) progress.Say("wrote " + options.output_path);
  if (!options.open) return;
  const Status opened = OpenPage(options.output_path);
  if (!opened) {
    progress.Say("warning: --open: " + opened.error().message());
  }
}

void SayWarnings(const Profile& profile, size_t said, Progress& progress) {
  const auto& warnings = profile.metadata.warnings;
  for (size_t i = said; i < warnings.size(); ++i) {
    progress.Say("warning: " + warnings[i]);
  }
}

int StatusOf(const Profile& profile, const ProfileOptions& options) {
  return options.strict && profile.accounting.AnythingLost() ? kExitLoss
                                                             : kExitOk;
}

}  // namespace profd
