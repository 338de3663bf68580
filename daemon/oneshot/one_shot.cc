// SPDX-License-Identifier: Apache-2.0
#include "daemon/oneshot/one_shot.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "daemon/base/freed_memory.h"
#include "daemon/base/own_priority.h"
#include "daemon/capture/capture_loop.h"
#include "daemon/naming/naming.h"
#include "daemon/oneshot/command.h"
#include "daemon/oneshot/debug_files.h"
#include "daemon/oneshot/findings.h"
#include "daemon/oneshot/finish_names.h"
#include "daemon/oneshot/live_capture.h"
#include "daemon/oneshot/messages.h"
#include "daemon/oneshot/missing_ids.h"
#include "daemon/oneshot/part_names.h"
#include "daemon/oneshot/progress.h"
#include "daemon/oneshot/replay.h"
#include "daemon/oneshot/report_file.h"
#include "daemon/oneshot/report_steps.h"
#include "daemon/oneshot/report_target.h"
#include "daemon/oneshot/start_line.h"
#include "daemon/oneshot/statistics_lines.h"
#include "daemon/oneshot/stop_signals.h"
#include "daemon/oneshot/thread_lines.h"
#include "daemon/output/format.h"
#include "daemon/output/summary.h"
#include "daemon/profile/kind_select.h"
#include "daemon/raw/raw_file.h"

namespace profd {
namespace {

using Clock = std::chrono::steady_clock;
using ksym::Fail;
using ksym::Result;
using ksym::Status;
using std::chrono::milliseconds;

constexpr CapturePace kPace = {
    .poll = milliseconds(50),
    .poll_building = milliseconds(10),
    .poll_filling = milliseconds(10),
    // A JVM may live for 80 ms, and calls new methods up to its end.
    .poll_naming = milliseconds(3),
    // So often that little is left to be named when the capture ends.
    .drain = milliseconds(200),
    // Where a drain takes longer than that, others want the CPU as well.
    .drain_gap = milliseconds(100),
    // So short that the ring is emptied in time.
    .tables_budget = milliseconds(80),
    .tables_margin = milliseconds(10),
    .beginning = milliseconds(1000),
    .last_drain = milliseconds(100),
    .tables_patience = milliseconds(500)};
// The thread that samples and writes.
constexpr PriorityAllowance kAllowance = {.at_once = milliseconds(500),
                                          .per_second = milliseconds(100)};
// From the end of sampling on until the report is made with the names that
// there are, so that a capture ends 2 s after its time.
constexpr milliseconds kNamesPatience(1700);

Status WriteRaw(const RawCapture& capture, ReportFile& file) {
  std::string bytes;
  auto written = WriteRawCapture(capture, bytes);
  if (written) written = file.Append(bytes);
  return written ? file.Commit() : written;
}

// One capture from start to report.
class CaptureRun {
 public:
  explicit CaptureRun(ProfileOptions options)
      : options_(std::move(options)),
        progress_(Progress::ForStderr(options_.quiet)),
        names_(options_, progress_) {}

  Result<int> Run() {
    auto begun = Begin();
    if (!begun) return Fail(std::move(begun.error()));
    auto sampled = Sample();
    if (!sampled) return Fail(std::move(sampled.error()));
    auto status = Finish();
    if (status) ExitIfBusy(*status, names_, capture_.get());
    return status;
  }

 private:
  // Opens what may fail first, starts sampling, then reads what takes time.
  Status Begin() {
    const auto missing = MissingIds(options_.capture.bpf);
    if (!missing) return Fail(missing.error());
    auto debug_files = DebugFiles::Prepare(options_);
    if (!debug_files) return Fail(std::move(debug_files.error()));
    debug_files_ = std::move(*debug_files);
    auto opened = OpenFiles();
    // What the user gave may be slow to read; signals still end us here.
    if (opened) opened = names_.LoadGivenKernelNames();
    if (!opened) return opened;
    auto signals = StopSignals::Install();
    if (!signals) return Fail(std::move(signals.error()));
    signals_ = std::make_unique<StopSignals>(std::move(*signals));
    // Before the capture, which selects the command by its pid. It waits until
    // it is sampled.
    auto prepared = PrepareCommand();
    if (!prepared) return prepared;

    auto capture = StartCapture(options_.capture, names_);
    if (!capture) return Fail(std::move(capture.error()));
    capture_ = std::move(*capture);
    auto known = KnowsKind(options_.value, capture_->metadata().kinds);
    if (!known) return Fail(std::move(known.error()));
    // Sampling begins within Enable(), which goes on to read processes.
    begin_ = Clock::now();
    auto enabled = capture_->Enable();
    if (!enabled) return enabled;
    if (options_.duration) {
      end_ = begin_ +
             std::chrono::duration_cast<Clock::duration>(*options_.duration);
    }
    CaptureMetadata metadata = capture_->metadata();
    if (command_) metadata.command = options_.command.front();
    names_.Begin(metadata);
    if (command_) {
      // Sampling is on and all is ready for its names, so that nothing of it is
      // missed.
      auto gone = command_->Go();
      if (!gone) return gone;
    }
    progress_.Say(StartLine(options_, metadata));
    SayStartWarnings(metadata, *missing, names_, progress_);
    // Options were parsed and the sampler was loaded, once and for all. Reading
    // the kernel's names is what takes the most memory.
    ReturnFilePages();
    names_.BeginKernelNames();
    return {};
  }

  Status OpenFiles() {
    auto report = ReportFile::Open(options_.output_path);
    if (!report) return Fail(std::move(report.error()));
    report_file_ = std::make_unique<ReportFile>(std::move(*report));
    if (options_.raw_path.empty()) return {};
    auto raw = ReportFile::Open(options_.raw_path);
    if (!raw) return Fail(std::move(raw.error()));
    raw_file_ = std::make_unique<ReportFile>(std::move(*raw));
    return {};
  }

  Status PrepareCommand() {
    if (options_.command.empty()) return {};
    auto command =
        Command::Prepare(options_.command, IsStdout(options_.output_path)
                                               ? Command::Stdout::kToStderr
                                               : Command::Stdout::kInherit);
    if (!command) return Fail(std::move(command.error()));
    command_ = std::make_unique<Command>(std::move(*command));
    BpfConfig& bpf = options_.capture.bpf;
    bpf.pids = {static_cast<uint32_t>(command_->pid())};
    bpf.follow_children = true;
    return {};
  }

  Status Sample() {
    CaptureLoop loop(*capture_, kPace, {.begin = begin_, .end = end_});
    for (;;) {
      share_.Renew();
      const auto now = Clock::now();
      const auto wake = std::min(now + loop.Pause(), end_);
      const auto event =
          signals_->Wait(std::max(wake - now, Clock::duration(0)));
      if (event == StopSignals::Event::kStop || CommandEnded()) return {};
      // The last part is taken when sampling has stopped.
      if (Clock::now() >= end_) return {};
      if (loop.Step() == CaptureLoop::Due::kNothing) {
        names_.Advance();
        continue;
      }
      auto raw = loop.Drain();
      if (!raw) return Fail(std::move(raw.error()));
      names_.Take(std::move(*raw));
      ShowProgress();
    }
  }

  bool CommandEnded() {
    if (!command_) return false;
    const auto status = command_->Poll();
    if (!status) return false;
    command_end_ = fmt::format("{} {}", options_.command.front(),
                               DescribeWaitStatus(*status));
    // Ctrl-C ends both; what was asked for then is the report.
    const bool is_stopped =
        signals_->Wait(milliseconds(0)) == StopSignals::Event::kStop;
    command_status_ = is_stopped ? kExitOk : ExitStatusOf(*status);
    return true;
  }

  void ShowProgress() {
    const Naming& naming = names_.naming();
    progress_.Update(
        {.elapsed_seconds =
             std::chrono::duration<double>(Clock::now() - begin_).count(),
         .samples = naming.accounting().taken,
         .distinct_stacks = naming.distinct_samples(),
         .lost = naming.accounting().lost()});
  }

  Result<int> Finish() {
    share_.Renew();
    const auto deadline = std::min(Clock::now(), end_) + kNamesPatience;
    auto raw = capture_->Stop(kPace.tables_patience);
    if (!raw) return Fail(std::move(raw.error()));
    names_.Take(std::move(*raw));
    names_.Finish(deadline, [this] {
      return signals_->Wait(milliseconds(0)) == StopSignals::Event::kStop;
    });
    Naming& naming = names_.naming();
    Profile profile = FinishNames(names_.MakeProfile(), options_,
                                  {.symbolizer = naming.symbols().symbolizer(),
                                   .debug_files = debug_files_,
                                   .kernel = naming.kernel().timeline(),
                                   .kernel_build_ids = BuildIdsOfRunningKernel(
                                       naming.metadata().kernel_release)},
                                  progress_);
    const std::vector<std::string> thread_lines = ThreadTimeLines(
        capture_->thread_times(), profile,
        options_.verbose ? ThreadLines::kEach : ThreadLines::kSum);
    profile.thread_sums = capture_->thread_times().sums();
    const std::string parked =
        ShowParked(capture_->thread_times().lives(), options_, profile);
    auto shown = ChooseKind(options_.value, RowOf(options_.format), profile);
    if (!shown) return Fail(std::move(shown.error()));
    SayWarnings(profile, naming.metadata().warnings.size(), progress_);
    auto written = WriteAll(profile);
    if (!written) return Fail(std::move(written.error()));
    if (!command_end_.empty()) progress_.Say(command_end_);
    progress_.Say(SummaryLine(profile));
    for (const std::string& line : thread_lines) progress_.Say(line);
    if (!parked.empty()) progress_.Say(parked);
    SayFindings(profile, options_, progress_);
    if (options_.verbose) {
      for (const std::string& line :
           StatisticsLines(naming, capture_->unwind_statistics(),
                           capture_->runtime_statistics())) {
        progress_.Say(line);
      }
    }
    SayWritten(options_, *report_file_, progress_);
    const int status = StatusOf(profile, options_);
    return status == kExitOk ? command_status_ : status;
  }

  Status WriteAll(const Profile& profile) {
    if (!names_.keeps_raw()) {
      return WriteReport(profile, options_, *report_file_);
    }
    RawCapture& capture = names_.CompleteRawCapture();
    capture.thread_lives = capture_->thread_times().lives();
    capture.thread_sums = capture_->thread_times().sums();
    auto written = options_.markup
                       ? WriteMarkupReport(capture, options_, *report_file_)
                       : WriteReport(profile, options_, *report_file_);
    if (written && raw_file_) written = WriteRaw(capture, *raw_file_);
    return written;
  }

  ProfileOptions options_;
  PriorityShare share_{kAllowance};
  Progress progress_;
  PartNames names_;
  DebugFiles debug_files_;
  // Made in Begin(), in this order.
  std::unique_ptr<ReportFile> report_file_;
  std::unique_ptr<ReportFile> raw_file_;
  std::unique_ptr<StopSignals> signals_;
  std::unique_ptr<Command> command_;
  std::string command_end_;
  int command_status_ = kExitOk;  // what we exit with, if nothing failed
  std::unique_ptr<Capture> capture_;
  Clock::time_point begin_;
  Clock::time_point end_ = Clock::time_point::max();
};

Result<int> RunCapture(ProfileOptions options) {
  StartOpener(options);
  const OwnPriority wanted = options.own_priority;
  // Before there are threads.
  options.own_priority = ChooseOwnPriority(wanted);
  if (wanted != OwnPriority::kAuto && wanted != options.own_priority &&
      !options.quiet) {
    PrintMessage(
        fmt::format("warning: --own-priority {} is not permitted "
                    "(needs CAP_SYS_NICE)",
                    OwnPriorityName(wanted)));
  }
  return CaptureRun(std::move(options)).Run();
}

}  // namespace

int RunOneShot(ProfileOptions options) {
  const Status readable = CheckTerminal(options.output_path, options.format);
  if (!readable) return ReportFailure(readable.error());
  const Result<int> status = options.replay_path.empty()
                                 ? RunCapture(std::move(options))
                                 : Replay(options);
  return status ? *status : ReportFailure(status.error());
}

}  // namespace profd
