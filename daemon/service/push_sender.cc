// SPDX-License-Identifier: Apache-2.0
#include "daemon/service/push_sender.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "daemon/service/log.h"
#include "ksym/base/file.h"

namespace profd {
namespace {

using Clock = std::chrono::steady_clock;
using Outcome = PushClient::Outcome;
using std::chrono::milliseconds;

constexpr milliseconds kFirstWait(1000);
constexpr milliseconds kLongestWait(60'000);
constexpr size_t kMaxHeld = 8;
constexpr size_t kMaxEntryBytes = size_t{256} << 20;
constexpr std::string_view kExtension = "push";
// Only its size bounds the spool.
constexpr std::chrono::seconds kAnyAge(std::chrono::years(100));

PushForm FormFor(const std::string& url) {
  const auto parsed = ParsePushUrl(url);
  return parsed ? FormOf(parsed->protocol) : PushForm::kPprof;
}

}  // namespace

milliseconds Backoff::Next() {
  constexpr unsigned kMaxDoublings = 6;  // then it is over the longest
  const milliseconds whole = std::min(
      kLongestWait, kFirstWait * (1U << std::min(failures_, kMaxDoublings)));
  ++failures_;
  std::uniform_int_distribution<int64_t> part(whole.count() / 2, whole.count());
  return milliseconds(part(random_));
}

ksym::Result<std::unique_ptr<PushSender>> PushSender::Open(
    const PushTarget& target, const Spool& spool, ServiceCounters& counters) {
  auto files =
      ProfileFiles::Open(spool.directory + "/" + DirectoryOf(target),
                         {.max_bytes = spool.max_bytes, .max_age = kAnyAge});
  if (!files) return ksym::Fail(std::move(files.error()));
  return std::unique_ptr<PushSender>(
      new PushSender(target.url, spool.directory, std::move(*files), counters));
}

PushSender::PushSender(std::string url, std::string spool_directory,
                       ProfileFiles files, ServiceCounters& counters)
    : url_(std::move(url)),
      spool_directory_(std::move(spool_directory)),
      form_(FormFor(url_)),
      counters_(counters),
      files_(std::move(files)),
      deleted_before_(files_.deleted_files()),
      backoff_(std::random_device()()) {
  ShowSpool();
}

PushSender::~PushSender() {
  Finish(Clock::time_point::min());
  if (thread_.joinable()) thread_.join();
  // Files on the disk wait for the next sender of that URL.
  counters_.push_waiting -= shown_files_;
  counters_.push_waiting_bytes -= shown_bytes_;
  counters_.push_dropped += held_.size();
}

void PushSender::SendBy(PushClient client) {
  const std::lock_guard lock(mutex_);
  // New settings may be the cure of what failed before: it is tried at once.
  client_ = std::make_shared<PushClient>(std::move(client));
  backoff_.Reset();
  next_try_ = {};
  changed_.notify_all();
  if (thread_.joinable()) return;
  done_ = false;
  thread_ = std::thread([this] { Run(); });
}

void PushSender::SetSpoolBound(uint64_t max_bytes) {
  const std::lock_guard lock(mutex_);
  files_.SetLimits({.max_bytes = max_bytes, .max_age = kAnyAge});
}

void PushSender::Add(const PushEntry& entry) {
  const std::lock_guard lock(mutex_);
  const auto written =
      files_.Write(entry.begin_unix_ns, kExtension, EncodePushEntry(entry));
  if (!written) {
    LogSome(LogLevel::kError, "push-spool",
            fmt::format("a profile for {} is kept in memory only: {}", url_,
                        written.error().message()));
    if (held_.size() == kMaxHeld) {
      held_.pop_front();
      ++counters_.push_dropped;
    }
    held_.push_back(entry);
  }
  ShowSpool();
  changed_.notify_all();
}

bool PushSender::Finish(Clock::time_point deadline) {
  std::unique_lock lock(mutex_);
  // Both: the thread may be waiting for its time, or for the receiver.
  stopped_ = true;
  changed_.notify_all();
  if (client_) client_->Stop();
  return changed_.wait_until(lock, deadline, [this] { return done_; });
}

void PushSender::Run() {
  while (auto next = WaitForNext()) {
    std::string why;
    // Without the mutex: it may take 35 s, while Add() goes on.
    const Outcome outcome = next->client->Send(next->entry, why);
    Settle(*next, outcome, why);
  }
  const std::lock_guard lock(mutex_);
  done_ = true;
  changed_.notify_all();
}

std::optional<PushSender::Next> PushSender::WaitForNext() {
  std::unique_lock lock(mutex_);
  for (;;) {
    if (stopped_) return std::nullopt;
    // After a failure all profiles wait, also those that come meanwhile: it is
    // the receiver that failed.
    if (Clock::now() < next_try_) {
      changed_.wait_until(lock, next_try_);
      continue;
    }
    if (auto next = Oldest()) {
      next->client = client_;
      return next;
    }
    changed_.wait(lock);
  }
}

// Under the mutex. A file that is no entry, of which nothing can be made, is
// removed.
std::optional<PushSender::Next> PushSender::Oldest() {
  // The disk first: memory has only what came when the disk refused.
  while (auto path = files_.OldestPath()) {
    const auto text = ksym::ReadFile(*path, kMaxEntryBytes);
    auto entry = text ? DecodePushEntry(*text)
                      : ksym::Result<PushEntry>(ksym::Fail(text.error()));
    if (entry)
      return Next{
          .path = std::move(path), .entry = std::move(*entry), .client = {}};
    LogSome(LogLevel::kError, "push-spool",
            fmt::format("{}: {}", *path, entry.error().message()));
    ++counters_.push_dropped;
    files_.Remove(*path);
    ShowSpool();
  }
  if (held_.empty()) return std::nullopt;
  Next next = {.path = {}, .entry = std::move(held_.front()), .client = {}};
  // Taken out, as Add() may drop the first one meanwhile; Settle() puts it
  // back.
  held_.pop_front();
  return next;
}

void PushSender::Settle(const Next& next, Outcome outcome,
                        const std::string& why) {
  const std::lock_guard lock(mutex_);
  if (outcome == Outcome::kTryAgain) {
    // A file keeps its place, and is the oldest again the next time, unless the
    // bound has deleted it by then.
    if (!next.path) held_.push_front(next.entry);
    // The stop has cut it off; that is no failure of the receiver.
    if (stopped_) return;
    ++counters_.push_failed;
    failing_ = true;
    next_try_ = Clock::now() + backoff_.Next();
    LogSome(LogLevel::kWarning, "push",
            fmt::format("{}: {}; {} profiles wait", url_, why,
                        files_.total_files() + held_.size()));
    return;
  }
  // A receiver that refuses a profile works: the next one need not wait.
  Remove(next);
  backoff_.Reset();
  if (outcome == Outcome::kRejected) {
    ++counters_.push_rejected;
    LogSome(LogLevel::kError, "push-rejected",
            fmt::format("{} refuses a profile: {}", url_, why));
    return;
  }
  ++counters_.push_sent;
  if (std::exchange(failing_, false)) {
    Log(LogLevel::kInfo, fmt::format("{} takes profiles again", url_));
  }
}

void PushSender::Remove(const Next& next) {
  if (next.path) files_.Remove(*next.path);
  ShowSpool();
}

// Under the mutex. Several senders share the counters.
void PushSender::ShowSpool() {
  counters_.push_dropped +=
      files_.deleted_files() -
      std::exchange(deleted_before_, files_.deleted_files());
  const uint64_t files = files_.total_files() + held_.size();
  counters_.push_waiting += files - std::exchange(shown_files_, files);
  const uint64_t bytes = files_.total_bytes();
  counters_.push_waiting_bytes += bytes - std::exchange(shown_bytes_, bytes);
}

}  // namespace profd
