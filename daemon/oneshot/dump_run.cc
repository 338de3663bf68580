// SPDX-License-Identifier: Apache-2.0
#include "daemon/oneshot/dump_run.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "daemon/capture/capture.h"
#include "daemon/dump/dump_json.h"
#include "daemon/dump/dump_text.h"
#include "daemon/dump/shared_memory.h"
#include "daemon/dump/thread_list.h"
#include "daemon/oneshot/live_capture.h"
#include "daemon/oneshot/messages.h"
#include "daemon/oneshot/missing_ids.h"
#include "daemon/oneshot/one_shot.h"
#include "daemon/oneshot/part_names.h"
#include "daemon/oneshot/progress.h"
#include "daemon/oneshot/report_file.h"
#include "daemon/oneshot/report_steps.h"
#include "daemon/oneshot/report_target.h"
#include "daemon/output/format.h"

namespace profd {
namespace {

using Clock = std::chrono::steady_clock;
using ksym::Fail;
using ksym::Result;
using ksym::Status;
using std::chrono::milliseconds;

// Threads that run are sampled for so long, and so often that one which runs
// all the while is caught some dozens of times.
constexpr milliseconds kSampling(60);
// While tables are built for what runs, as without them stacks are cut: up to
// this.
constexpr milliseconds kMaxSampling(300);
constexpr uint64_t kSamplingHz = 499;
constexpr milliseconds kDumpPollPeriod(10);
constexpr milliseconds kDumpTablesPatience(2000);
constexpr milliseconds kDumpTablesBudget(20);
constexpr milliseconds kDumpNamesPatience(1700);

class DumpRun {
 public:
  explicit DumpRun(ProfileOptions options)
      : options_(std::move(options)),
        progress_(Progress::ForStderr(options_.quiet)),
        names_(options_, progress_) {}

  Result<int> Run() {
    auto begun = Begin();
    if (!begun) return Fail(std::move(begun.error()));
    auto made = Finish();
    if (!made) return Fail(std::move(made.error()));
    ExitIfBusy(kExitOk, names_, capture_.get());
    return kExitOk;
  }

 private:
  Status Begin() {
    const auto missing = MissingIds(options_.capture.bpf);
    if (!missing) return Fail(missing.error());
    auto file = ReportFile::Open(options_.output_path);
    if (!file) return Fail(std::move(file.error()));
    file_ = std::make_unique<ReportFile>(std::move(*file));
    options_.capture.rate = {.frequency_hz = kSamplingHz, .count_period = 0};
    options_.capture.store = StackStore::kExact;
    options_.capture.bpf.per_thread = true;
    options_.capture.bpf.dump = ThreadDump::kAllStacks;
    auto capture = StartCapture(options_.capture, names_);
    if (!capture) return Fail(std::move(capture.error()));
    capture_ = std::move(*capture);
    auto enabled = capture_->Enable();
    if (!enabled) return enabled;
    begin_ = Clock::now();
    names_.Begin(capture_->metadata());
    SayStartWarnings(capture_->metadata(), *missing, names_, progress_);
    names_.BeginKernelNames();
    return {};
  }

  void Sample() {
    auto end = begin_ + kSampling;
    const auto latest = begin_ + kMaxSampling;
    for (;;) {
      capture_->Poll();
      capture_->BuildTables(kDumpTablesBudget, end);
      const auto now = Clock::now();
      if (capture_->IsBuildingTables()) end = std::min(now + kSampling, latest);
      if (now >= end) return;
      std::this_thread::sleep_for(
          std::min<Clock::duration>(kDumpPollPeriod, end - now));
    }
  }

  Status Finish() {
    Sample();
    auto raw = capture_->Stop(kDumpTablesPatience);
    if (!raw) return Fail(std::move(raw.error()));
    names_.Take(std::move(*raw));
    names_.Finish(Clock::now() + kDumpNamesPatience, [] { return false; });
    const Profile profile = names_.MakeProfile();
    SharedMemory memory;
    const ThreadList list =
        MakeThreadList(capture_->dumped_threads(), profile,
                       [&](uint32_t pid, uint32_t other_pid, uint64_t address) {
                         return memory.AreShared(pid, other_pid, address);
                       });
    auto written = WriteList(list, profile);
    if (written) SayWritten(options_, *file_, progress_);
    return written;
  }

  Status WriteList(const ThreadList& list, const Profile& profile) {
    const bool is_text = options_.format == OutputFormat::kText;
    if (is_text || options_.format == OutputFormat::kJson) {
      OutputBuffer out(
          [&](std::string_view piece) { return file_->Append(piece); });
      const auto write = is_text ? &WriteDumpText : &WriteDumpJson;
      write(list, profile, out);
      return file_->Finish(out.Finish());
    }
    Profile threads = MakeThreadProfile(list, profile);
    auto shown = ChooseKind(options_.value, RowOf(options_.format), threads);
    if (!shown) return shown;
    // These have no place for them.
    for (const std::string& line : SummaryLines(list)) progress_.Say(line);
    return WriteReport(threads, options_, *file_);
  }

  ProfileOptions options_;
  Progress progress_;
  PartNames names_;
  std::unique_ptr<ReportFile> file_;
  std::unique_ptr<Capture> capture_;
  Clock::time_point begin_;
};

}  // namespace

int RunDump(ProfileOptions options) {
  const Status readable = CheckTerminal(options.output_path, options.format);
  if (!readable) return ReportFailure(readable.error());
  StartOpener(options);
  const Result<int> status = DumpRun(std::move(options)).Run();
  return status ? *status : ReportFailure(status.error());
}

}  // namespace profd
