// SPDX-License-Identifier: Apache-2.0
#include "daemon/service/history_thread.h"

#include <fmt/format.h>
#include <unistd.h>

#include <utility>

#include "daemon/base/freed_memory.h"
#include "daemon/base/now_ns.h"
#include "daemon/service/counted_cpu.h"
#include "daemon/service/log.h"
#include "ksym/base/file.h"

namespace profd {
namespace {

// Parts of about half a minute, a second each, and the ends of intervals.
constexpr size_t kMaxHistoryWaiting = 64;
// Files are not put together while so many wait, and what was begun ends: it
// takes a second, and the others have room for half a minute.
constexpr size_t kCompactWhileWaiting = 8;
constexpr size_t kCompactUpToWaiting = 32;
// What a crash may cost, whatever the intervals are.
constexpr std::chrono::seconds kLongestUnwritten(10);

// A run is told from others by when it began, and by its pid where a clock was
// set back.
history::Run MakeRun() {
  history::Run run;
  const auto boot = ksym::ReadFile("/proc/sys/kernel/random/boot_id", 64);
  if (boot) run.boot = boot->substr(0, boot->find('\n'));
  run.name = fmt::format("{}-{}", NowNs(CLOCK_REALTIME), ::getpid());
  return run;
}

}  // namespace

HistoryThread::HistoryThread(Settings settings, ServiceCounters& counters)
    : counters_(counters),
      tasks_(kMaxHistoryWaiting),
      has_directory_(!settings.directory.empty()),
      settings_(std::move(settings)),
      run_(MakeRun()),
      thread_([this] { Run(); }) {}

HistoryThread::~HistoryThread() {
  tasks_.Close();
  thread_.join();
}

void HistoryThread::AddPart(std::shared_ptr<const Profile> part) {
  // The thread would wake up each second for nothing.
  if (!has_directory_) return;
  const uint64_t samples = part->accounting.emitted;
  Task task = std::move(part);
  if (tasks_.Push(task)) return;
  counters_.history_samples_dropped += samples;
  LogSome(LogLevel::kError, "history-behind",
          fmt::format("{} samples are not in the history: the disk is too slow",
                      samples));
}

// One that finds no place is made up for by the next.
void HistoryThread::EndInterval() {
  if (!has_directory_) return;
  Task task = IntervalEnd();
  (void)tasks_.Push(task);
}

void HistoryThread::Configure(Settings settings) {
  const bool has_directory = !settings.directory.empty();
  Task task = std::move(settings);
  if (tasks_.Push(task)) {
    has_directory_ = has_directory;
    return;
  }
  Log(LogLevel::kError,
      "the disk is too slow: \"history\" stays as it was; reload again");
}

bool HistoryThread::Finish(std::chrono::steady_clock::time_point deadline) {
  tasks_.Close();
  std::unique_lock lock(mutex_);
  return changed_.wait_until(lock, deadline, [this] { return done_; });
}

void HistoryThread::Run() {
  // What another run left becomes a segment before the first sample.
  if (!settings_.directory.empty()) HasWriter();
  while (auto task = tasks_.Pop()) {
    if (auto* settings = std::get_if<Settings>(&*task)) {
      if (settings->directory != settings_.directory) Close();
      settings_ = std::move(*settings);
      if (writer_) writer_->SetLimits(settings_.limits);
    } else if (std::holds_alternative<IntervalEnd>(*task)) {
      // Before files are put together, which may take a second: a crash costs
      // what is not written.
      Commit();
      TidyUp();
    } else {
      Take(*std::get<std::shared_ptr<const Profile>>(*task));
    }
  }
  Close();
  const std::lock_guard lock(mutex_);
  done_ = true;
  changed_.notify_all();
}

void HistoryThread::Take(const Profile& part) {
  if (settings_.directory.empty()) return;
  if (HasWriter()) {
    writer_->Add(part);
    const auto now = std::chrono::steady_clock::now();
    if (now - committed_ >= kLongestUnwritten) Commit();
  } else {
    counters_.history_samples_dropped += part.accounting.emitted;
  }
}

void HistoryThread::Commit() {
  if (!writer_) return;
  committed_ = std::chrono::steady_clock::now();
  // Its time counts also where it fails: a disk that refuses is asked by the
  // clock and not with each part.
  Note(writer_->Commit(NowNs(CLOCK_REALTIME)));
  ShowCounts();
}

void HistoryThread::TidyUp() {
  if (!writer_ || tasks_.size() >= kCompactWhileWaiting) return;
  CountedCpu cpu(counters_.history_compaction_cpu_ns);
  const auto is_over = [&] {
    cpu.Count();
    return tasks_.is_closed() || tasks_.size() >= kCompactUpToWaiting;
  };
  const auto note = [&](const ksym::Status& done, const std::string& what) {
    if (done || tasks_.is_closed()) return;
    LogSome(LogLevel::kError, "history-compaction",
            what + ": " + done.error().message());
  };
  const history::WriterCounts& counts = writer_->counts();
  note(writer_->Compact(NowNs(CLOCK_REALTIME), is_over),
       "files of the history were not put together");
  if (counts.compactions == shown_.compactions) {
    note(writer_->Thin(NowNs(CLOCK_REALTIME), is_over),
         "a file of the history was not thinned out");
  }
  // What it took is scattered over the heap, and not needed for an hour.
  if (counts.compactions != shown_.compactions ||
      counts.thinnings != shown_.thinnings) {
    ReturnUnusedMemory();
  }
  ShowCounts();
}

// The journal stays, so that an end takes no longer than an interval: it is
// read as it is, and the next run makes a segment of it. The directory is free
// for others.
void HistoryThread::Close() {
  if (!writer_) return;
  Commit();
  writer_.reset();
  // The counts of the next writer begin at zero, while the counters go on.
  shown_ = {};
  counters_.history_bytes = 0;
  counters_.history_files = 0;
}

// A directory that cannot be opened is tried again with the next part.
bool HistoryThread::HasWriter() {
  if (writer_) return true;
  auto writer = history::HistoryWriter::Open(
      settings_.directory, settings_.limits, run_, NowNs(CLOCK_REALTIME));
  if (!writer) {
    Note(ksym::Fail(std::move(writer.error())));
    return false;
  }
  writer_ = std::make_unique<history::HistoryWriter>(std::move(*writer));
  committed_ = std::chrono::steady_clock::now();
  const history::WriterCounts& counts = writer_->counts();
  if (counts.bytes_torn > 0 || counts.files_bad > 0) {
    Log(LogLevel::kWarning,
        fmt::format("history: of what an earlier run was writing {} bytes are "
                    "lost, and {} files cannot be read",
                    counts.bytes_torn, counts.files_bad));
  }
  ShowCounts();
  return true;
}

void HistoryThread::Note(const ksym::Status& written) {
  if (!written) {
    ++counters_.history_failed;
    LogSome(LogLevel::kError, "history",
            "the history is not written: " + written.error().message());
  } else if (failing_) {
    Log(LogLevel::kInfo, "the history is written again");
  }
  failing_ = !written;
}

void HistoryThread::ShowCounts() {
  const history::WriterCounts& now = writer_->counts();
  counters_.history_records += now.records - shown_.records;
  counters_.history_files_deleted += now.files_deleted - shown_.files_deleted;
  counters_.history_files_bad += now.files_bad - shown_.files_bad;
  counters_.history_compactions += now.compactions - shown_.compactions;
  counters_.history_compactions_failed +=
      now.compaction_failures - shown_.compaction_failures;
  counters_.history_thinnings += now.thinnings - shown_.thinnings;
  counters_.history_thinnings_failed +=
      now.thinning_failures - shown_.thinning_failures;
  counters_.history_stacks_folded += now.stacks_folded - shown_.stacks_folded;
  const uint64_t dropped = now.samples_dropped - shown_.samples_dropped;
  counters_.history_samples_dropped += dropped;
  if (dropped > 0) {
    LogSome(LogLevel::kError, "history-dropped",
            fmt::format("{} samples are not in the history: it could not be "
                        "written, or they were too many for one file",
                        dropped));
  }
  counters_.history_bytes = writer_->bytes();
  counters_.history_files = writer_->files();
  shown_ = now;
}

}  // namespace profd
