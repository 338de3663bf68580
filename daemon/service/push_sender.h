// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <string>
#include <thread>

#include "daemon/service/counters.h"
#include "daemon/service/profile_files.h"
#include "daemon/service/push_client.h"
#include "ksym/base/result.h"

namespace profd {

// How long to wait after a failure: twice as long after each, up to a minute,
// and a random part of that, so that a receiver that comes back is not met by
// all hosts at once.
class Backoff {
 public:
  explicit Backoff(uint64_t seed) : random_(seed) {}
  // From half a second to a second at first, half a minute to a minute at last.
  std::chrono::milliseconds Next();
  void Reset() { failures_ = 0; }

 private:
  std::mt19937_64 random_;
  unsigned failures_ = 0;
};

// Sends to one target, oldest first, in a thread of its own. What is not sent
// yet is in files, so that it outlives this process and the receiver's absence;
// over the bound the oldest are deleted and counted. Each profile is sent at
// least once: twice if the receiver's answer was lost.
class PushSender {
 public:
  struct Spool {
    std::string directory;
    uint64_t max_bytes = 0;  // of each target
  };
  // Opens the target's spool, with what an earlier run has left. Nothing is
  // sent before SendBy(). Counters must live longer.
  static ksym::Result<std::unique_ptr<PushSender>> Open(
      const PushTarget& target, const Spool& spool, ServiceCounters& counters);
  // Waits for the thread, if it was not seen to have ended.
  ~PushSender();
  PushSender(const PushSender&) = delete;
  PushSender& operator=(const PushSender&) = delete;

  // All but the profile that is just being sent go by that client. Starts the
  // thread if it is the first.
  void SendBy(PushClient client);
  void SetSpoolBound(uint64_t max_bytes);
  // PushTarget::samples_per_hour, which holds for profiles from now on.
  void SetSamplesPerHour(uint64_t samples) { samples_per_hour_ = samples; }
  uint64_t samples_per_hour() const { return samples_per_hour_; }
  // Whether it has the spool of that URL.
  bool HasSpool(const PushTarget& target, const Spool& spool) const {
    return url_ == target.url && spool_directory_ == spool.directory;
  }

  // The form of its entries' bodies.
  PushForm form() const { return form_; }

  // On the disk, or if that fails in memory, when it returns.
  void Add(const PushEntry& entry);
  // No more is sent. Whether the thread ended before the deadline.
  bool Finish(std::chrono::steady_clock::time_point deadline);

 private:
  struct Next {
    std::optional<std::string> path;  // empty: it is in memory only
    PushEntry entry;
    std::shared_ptr<PushClient> client;  // by which it is sent
  };

  PushSender(std::string url, std::string spool_directory, ProfileFiles files,
             ServiceCounters& counters);
  void Run();
  std::optional<Next> WaitForNext();
  std::optional<Next> Oldest();
  void Settle(const Next& next, PushClient::Outcome outcome,
              const std::string& why);
  void Remove(const Next& next);
  void ShowSpool();

  const std::string url_;
  const std::string spool_directory_;
  const PushForm form_;
  ServiceCounters& counters_;
  std::atomic<uint64_t> samples_per_hour_ = 0;

  std::mutex mutex_;  // of what follows
  std::condition_variable changed_;
  std::shared_ptr<PushClient> client_;
  ProfileFiles files_;
  std::deque<PushEntry> held_;  // that could not be written to the disk
  uint64_t shown_files_ = 0;    // in the counters
  uint64_t shown_bytes_ = 0;
  uint64_t deleted_before_ = 0;
  bool stopped_ = false;
  bool done_ = true;  // the thread has ended, or did not begin
  Backoff backoff_;
  std::chrono::steady_clock::time_point next_try_;

  // Used by the thread only.
  bool failing_ = false;

  std::thread thread_;  // last: it uses all of the above
};

}  // namespace profd
