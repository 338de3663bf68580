// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "daemon/clickhouse/run_name.h"
#include "daemon/profile/profile.h"
#include "daemon/service/blocking_queue.h"
#include "daemon/service/counters.h"
#include "daemon/service/labels.h"
#include "daemon/service/push_sender.h"

namespace profd {

// Sends each profile to every target, in the form that it takes.
// One thread makes these of it and writes them to the targets' spools, one per
// target sends.
class PushSink {
 public:
  struct Settings {
    std::vector<PushTarget> targets;  // each URL once
    PushSender::Spool spool;
  };
  // Settings that are about to come into force, with all that could fail done.
  class Change;

  // Without targets; Apply() gives it some. The counters must live longer.
  explicit PushSink(ServiceCounters& counters);
  ~PushSink();  // waits for what was given to be in the spools
  PushSink(const PushSink&) = delete;
  PushSink& operator=(const PushSink&) = delete;

  // Reads tokens and opens spools; nothing changes yet.
  ksym::Result<Change> Prepare(const Settings& settings);
  // Targets that stay go on, with the token that is in its file now; what waits
  // for one that went stays on the disk.
  void Apply(Change change);

  // Never blocks; dropped and counted when too many are waiting.
  void Write(std::shared_ptr<const Profile> profile);
  // For what is given from now on, or a moment before.
  void SetLabels(const Labels& labels);
  // Whether everything was in the spools before the deadline; nothing may be
  // given after it.
  bool Finish(std::chrono::steady_clock::time_point deadline);
  // After Finish(): whether the senders' threads have ended as well. If not
  // one is still connecting, which cannot be interrupted.
  bool FinishSenders(std::chrono::steady_clock::time_point deadline);

 private:
  using Senders = std::vector<std::shared_ptr<PushSender>>;

  void Run();
  void Add(const Profile& profile, const Labels& labels);
  PushEntry EntryOf(const Profile& profile, const Labels& labels, PushForm form,
                    std::string_view run);
  Profile Thinned(const Profile& profile, const Labels& labels,
                  uint64_t samples_per_hour);
  Senders senders();
  ksym::Result<std::shared_ptr<PushSender>> FindOrOpen(
      const PushTarget& target, const PushSender::Spool& spool);
  void Reap();

  ServiceCounters& counters_;
  clickhouse::RunName run_name_;                    // used by the thread only
  std::mt19937_64 random_{std::random_device()()};  // so is this
  BlockingQueue<std::shared_ptr<const Profile>> profiles_;
  std::mutex mutex_;  // of what follows
  std::condition_variable changed_;
  Senders senders_;
  Senders retired_;  // of targets that went: their threads still end
  Labels labels_;
  bool done_ = false;

  std::thread thread_;  // last: it uses all of the above
};

class PushSink::Change {
 private:
  friend class PushSink;
  struct Target {
    std::shared_ptr<PushSender> sender;  // may not have begun yet
    PushClient client;
    uint64_t samples_per_hour = 0;
  };
  std::vector<Target> targets_;
  uint64_t spool_max_bytes_ = 0;
};

}  // namespace profd
