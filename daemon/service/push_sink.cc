// SPDX-License-Identifier: Apache-2.0
#include "daemon/service/push_sink.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <utility>

#include "daemon/clickhouse/batch.h"
#include "daemon/output/format.h"
#include "daemon/output/gzip.h"
#include "daemon/output/sample_budget.h"
#include "daemon/service/log.h"

namespace profd {
namespace {

using Clock = std::chrono::steady_clock;

constexpr size_t kMaxProfilesWaiting = 8;  // for the disk

std::string RenderFor(const Profile& profile, const Labels& labels,
                      OutputFormat format) {
  return Render(profile, format, OptionsFor(format, labels));
}

}  // namespace

PushEntry PushSink::EntryOf(const Profile& profile, const Labels& labels,
                            PushForm form, std::string_view run) {
  const CaptureMetadata& metadata = profile.metadata;
  PushEntry entry = {
      .begin_unix_ns = metadata.start_unix_ns,
      .end_unix_ns = metadata.start_unix_ns + metadata.duration_ns,
      .frequency_hz = metadata.kinds.front().frequency_hz,
      .hostname = metadata.hostname,
      .body = {}};
  switch (form) {
    case PushForm::kPprof:  // is gzipped by itself
      entry.body = RenderFor(profile, labels, OutputFormat::kPprof);
      break;
    case PushForm::kOtlp:
      entry.body = Gzip(RenderFor(profile, labels, OutputFormat::kOtlp));
      break;
    case PushForm::kClickHouse: {
      const clickhouse::Batch batch =
          clickhouse::MakeBatch(profile, labels.of_sample, run);
      counters_.push_not_kept += batch.not_kept;
      entry.body = clickhouse::PackBatch(batch);
      break;
    }
  }
  return entry;
}

// A copy with as many samples as a receiver wants.
Profile PushSink::Thinned(const Profile& profile, const Labels& labels,
                          uint64_t samples_per_hour) {
  BudgetedSamples kept =
      KeepWithinBudget(profile, labels.of_sample, samples_per_hour, random_);
  counters_.push_left_out += kept.left_out;
  Profile thinned = profile;
  thinned.samples = std::move(kept.samples);
  return thinned;
}

PushSink::PushSink(ServiceCounters& counters)
    : counters_(counters),
      profiles_(kMaxProfilesWaiting),
      thread_([this] { Run(); }) {}

PushSink::~PushSink() {
  profiles_.Close();
  thread_.join();
}

ksym::Result<std::shared_ptr<PushSender>> PushSink::FindOrOpen(
    const PushTarget& target, const PushSender::Spool& spool) {
  const auto has_spool = [&](const auto& sender) {
    return sender->HasSpool(target, spool);
  };
  {
    const std::lock_guard lock(mutex_);
    const auto found = std::ranges::find_if(senders_, has_spool);
    if (found != senders_.end()) return *found;
    // Two senders of one spool would send everything twice.
    if (std::ranges::any_of(retired_, has_spool)) {
      return ksym::Fail(
          ksym::ErrorCode::kIo,
          target.url +
              ": was removed a moment ago and still ends: reload once more");
    }
  }
  return PushSender::Open(target, spool, counters_);
}

ksym::Result<PushSink::Change> PushSink::Prepare(const Settings& settings) {
  Reap();
  Change change;
  change.spool_max_bytes_ = settings.spool.max_bytes;
  for (const PushTarget& target : settings.targets) {
    auto sender = FindOrOpen(target, settings.spool);
    if (!sender) {
      return ksym::Fail(std::move(sender.error()).WithContext("push"));
    }
    auto client = PushClient::Make(target);
    if (!client) {
      return ksym::Fail(std::move(client.error()).WithContext("push"));
    }
    change.targets_.push_back({.sender = std::move(*sender),
                               .client = std::move(*client),
                               .samples_per_hour = target.samples_per_hour});
  }
  return change;
}

void PushSink::Apply(Change change) {
  Senders wanted;
  for (Change::Target& target : change.targets_) {
    target.sender->SetSpoolBound(change.spool_max_bytes_);
    target.sender->SetSamplesPerHour(target.samples_per_hour);
    target.sender->SendBy(std::move(target.client));
    wanted.push_back(std::move(target.sender));
  }
  {
    const std::lock_guard lock(mutex_);
    std::ranges::copy_if(
        senders_, std::back_inserter(retired_), [&](const auto& sender) {
          return std::ranges::find(wanted, sender) == wanted.end();
        });
    senders_ = std::move(wanted);
  }
  Reap();
}

// Forgets retired senders that have ended.
void PushSink::Reap() {
  const std::lock_guard lock(mutex_);
  std::erase_if(retired_, [](const auto& sender) {
    return sender->Finish(Clock::time_point::min());
  });
}

PushSink::Senders PushSink::senders() {
  const std::lock_guard lock(mutex_);
  return senders_;
}

void PushSink::Write(std::shared_ptr<const Profile> profile) {
  const size_t count = senders().size();
  if (count == 0 || profiles_.Push(profile)) return;
  counters_.push_dropped += count;
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
  Senders all = senders();
  {
    const std::lock_guard lock(mutex_);
    all.insert(all.end(), retired_.begin(), retired_.end());
  }
  // All are told to before the first is waited for.
  for (const auto& sender : all) sender->Finish(Clock::time_point::min());
  return std::ranges::all_of(
      all, [&](const auto& sender) { return sender->Finish(deadline); });
}

// Makes each form once of as many samples, if somebody takes it.
void PushSink::Add(const Profile& profile, const Labels& labels) {
  // The interval has one name, whoever gets how many of its samples.
  const std::string run = run_name_.Next(profile.metadata.start_unix_ns);
  std::map<std::pair<uint64_t, PushForm>, PushEntry> entries;
  for (const auto& sender : senders()) {
    const uint64_t samples = sender->samples_per_hour();
    const PushForm form = sender->form();
    auto [entry, is_new] = entries.try_emplace({samples, form});
    if (is_new && samples == 0) {
      entry->second = EntryOf(profile, labels, form, run);
    } else if (is_new) {
      entry->second =
          EntryOf(Thinned(profile, labels, samples), labels, form, run);
    }
    sender->Add(entry->second);
  }
}

void PushSink::Run() {
  while (auto profile = profiles_.Pop()) {
    Labels labels;
    {
      const std::lock_guard lock(mutex_);
      labels = labels_;
    }
    Add(**profile, labels);
    Reap();
  }
  const std::lock_guard lock(mutex_);
  done_ = true;
  changed_.notify_all();
}

}  // namespace profd
