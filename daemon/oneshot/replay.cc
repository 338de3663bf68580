// SPDX-License-Identifier: Apache-2.0
#include "daemon/oneshot/replay.h"

#include <sys/stat.h>

#include <algorithm>
#include <string>
#include <utility>

#include "daemon/base/working_memory.h"
#include "daemon/naming/kernel_names.h"
#include "daemon/naming/resolve.h"
#include "daemon/oneshot/debug_files.h"
#include "daemon/oneshot/findings.h"
#include "daemon/oneshot/finish_names.h"
#include "daemon/oneshot/one_shot.h"
#include "daemon/oneshot/progress.h"
#include "daemon/oneshot/report_file.h"
#include "daemon/oneshot/report_steps.h"
#include "daemon/output/format.h"
#include "daemon/output/summary.h"
#include "daemon/raw/raw_file.h"
#include "ksym/base/caller_rights.h"
#include "ksym/base/file.h"

namespace profd {
namespace {

using ksym::Fail;
using ksym::Result;

// A raw capture larger than this is refused by --replay.
constexpr size_t kMaxRawBytes = size_t{1} << 31;
// What naming and writing it take, about.
constexpr size_t kMemoryPerRawByte = 8;

Result<RawCapture> LoadRawCapture(const std::string& path) {
  const auto file = ksym::OpenInput(path);
  if (!file) return Fail(file.error());
  struct stat status = {};
  if (::fstat(file->get(), &status) == 0 && S_ISREG(status.st_mode)) {
    PrepareWorkingMemory(
        std::min(static_cast<size_t>(status.st_size), kMaxRawBytes) *
        kMemoryPerRawByte);
  }
  auto bytes = ksym::ReadAll(file->get(), kMaxRawBytes);
  if (!bytes) return Fail(std::move(bytes.error()).WithContext(path));
  auto capture = ReadRawCapture(std::move(*bytes));
  if (!capture) return Fail(std::move(capture.error()).WithContext(path));
  return capture;
}

// Captures of older programs do not say them.
KernelBuildIds KernelBuildIdsOf(const RawCapture& capture) {
  return capture.kernel_parts.empty()
             ? BuildIdsOfRunningKernel(capture.profile.metadata.kernel_release)
             : BuildIdsOfCapture(capture.kernel_parts);
}

}  // namespace

Result<int> Replay(const ProfileOptions& options) {
  // The capture says which files are read, and anyone may have made it: no more
  // than its caller's are.
  ksym::GiveUpFileCapabilities();
  auto debug_files = DebugFiles::Prepare(options);
  if (!debug_files) return Fail(std::move(debug_files.error()));
  // Before the capture is read, which may take long.
  auto report = ReportFile::Open(options.output_path);
  if (!report) return Fail(std::move(report.error()));
  auto capture = LoadRawCapture(options.replay_path);
  if (!capture) return Fail(std::move(capture.error()));
  Progress progress = Progress::ForStderr(options.quiet);
  if (options.markup) {
    auto written = WriteMarkupReport(*capture, options, *report);
    if (!written) return Fail(std::move(written.error()));
    SayWritten(options, *report, progress);
    return kExitOk;
  }
  KernelNames kernel = KernelNames::OfCapture(*capture);
  if (!options.kernel_symbols_path.empty()) {
    auto names = KernelNames::OfFile(options.kernel_symbols_path);
    if (!names) return Fail(std::move(names.error()));
    kernel = std::move(*names);
    capture->profile.metadata.kernel_table = kernel.statistics();
  }
  if (!kernel.warning().empty()) progress.Say("warning: " + kernel.warning());

  ksym::Symbolizer symbolizer(MakeSymbolizerOptions(
      options, ksym::SymbolizerOptions::Files::kOfHost, capture->vdso_image));
  SymbolizerNames names(symbolizer);
  Resolver resolver(MakeResolveOptions(options));
  UseKernelNames(kernel, resolver);
  ProfileBuilder builder(ProfileBuilder::Parts::kOne);
  resolver.Add(capture->profile, names, builder);
  const size_t old_warnings = capture->profile.metadata.warnings.size();
  // What has names now makes room for the report.
  capture->profile.stacks = {};
  capture->profile.samples = {};
  Profile profile =
      FinishNames(std::move(builder).Finish(capture->profile.metadata), options,
                  {.symbolizer = &symbolizer,
                   .debug_files = *debug_files,
                   .kernel = kernel.timeline(),
                   .kernel_build_ids = KernelBuildIdsOf(*capture)},
                  progress);
  profile.thread_sums = std::move(capture->thread_sums);
  const std::string parked =
      ShowParked(capture->thread_lives, options, profile);
  auto shown = ChooseKind(options.value, RowOf(options.format), profile);
  if (!shown) return Fail(std::move(shown.error()));
  SayWarnings(profile, old_warnings, progress);
  auto written = WriteReport(profile, options, *report);
  if (!written) return Fail(std::move(written.error()));
  progress.Say(SummaryLine(profile));
  if (!parked.empty()) progress.Say(parked);
  SayFindings(profile, options, progress);
  SayWritten(options, *report, progress);
  return StatusOf(profile, options);
}

}  // namespace profd
