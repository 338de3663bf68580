#include "daemon/service/push_sink.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "daemon/output/format.h"
#include "daemon/service/log.h"

namespace profd {
namespace {

using Clock = std::chrono::steady_clock;

constexpr size_t kMaxWaiting = 8;  // for the disk

PushEntry EntryOf(const Profile& profile, const Labels& labels) {
  const CaptureMetadata& metadata = profile.metadata;
  constexpr OutputFormat kFormat = OutputFormat::kPprof;
  return {.begin_unix_ns = metadata.start_unix_ns,
          .end_unix_ns = metadata.start_unix_ns + metadata.duration_ns,
          .frequency_hz = metadata.frequency_hz,
          .hostname = metadata.hostname,
          .pprof = Render(profile, kFormat, OptionsFor(kFormat, labels))};
}

}  // namespace

ksym::Result<std::unique_ptr<PushSink>> PushSink::Start(
    const Settings& settings, const Labels& labels, ServiceCounters& counters) {
  std::vector<std::unique_ptr<PushSender>> senders;
  for (const PushTarget& target : settings.targets) {
    auto sender = PushSender::Start(target, settings.spool, counters);
    if (!sender) {
      return ksym::Fail(std::move(sender.error()).WithContext("push"));
    }
    senders.push_back(std::move(*sender));
  }
  return std::unique_ptr<PushSink>(
      new PushSink(std::move(senders), labels, counters));
}

PushSink::PushSink(std::vector<std::unique_ptr<PushSender>> senders,
                   const Labels& labels, ServiceCounters& counters)
    : counters_(counters),
      senders_(std::move(senders)),
      profiles_(kMaxWaiting),
      labels_(labels),
      thread_([this] { Run(); }) {}

PushSink::~PushSink() {
  profiles_.Close();
  thread_.join();
}

void PushSink::Write(std::shared_ptr<const Profile> profile) {
  if (senders_.empty() || profiles_.Push(profile)) return;
  counters_.push_dropped += senders_.size();
  LogSome(LogLevel::kError, "push-behind",
          "a profile was not sent: the disk is too slow");
}

void PushSink::SetLabels(const Labels& labels) {
  const std::lock_guard lock(mutex_);
  labels_ = labels;
}

bool PushSink::Finish(Clock::time_point deadline) {
  profiles_.Close();
  std::unique_lock lock(mutex_);
  return changed_.wait_until(lock, deadline, [this] { return done_; });
}

bool PushSink::FinishSenders(Clock::time_point deadline) {
  return std::ranges::all_of(
      senders_, [&](auto& sender) { return sender->Finish(deadline); });
}

void PushSink::Run() {
  while (auto profile = profiles_.Pop()) {
    Labels labels;
    {
      const std::lock_guard lock(mutex_);
      labels = labels_;
    }
    const PushEntry entry = EntryOf(**profile, labels);
    for (const auto& sender : senders_) sender->Add(entry);
  }
  const std::lock_guard lock(mutex_);
  done_ = true;
  changed_.notify_all();
}

}  // namespace profd
