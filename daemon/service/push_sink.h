#pragma once

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "daemon/profile/profile.h"
#include "daemon/service/blocking_queue.h"
#include "daemon/service/counters.h"
#include "daemon/service/labels.h"
#include "daemon/service/push_sender.h"

namespace profd {

// Sends each profile to every target, as pprof. One thread makes pprof of it
// and writes it to the targets' spools, one per target sends.
class PushSink {
 public:
  struct Settings {
    std::vector<PushTarget> targets;
    PushSender::Spool spool;
  };
  // The counters must live longer.
  static ksym::Result<std::unique_ptr<PushSink>> Start(
      const Settings& settings, const Labels& labels,
      ServiceCounters& counters);
  ~PushSink();  // waits for what was given to be in the spools
  PushSink(const PushSink&) = delete;
  PushSink& operator=(const PushSink&) = delete;

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
  PushSink(std::vector<std::unique_ptr<PushSender>> senders,
           const Labels& labels, ServiceCounters& counters);
  void Run();

  ServiceCounters& counters_;
  std::vector<std::unique_ptr<PushSender>> senders_;
  BlockingQueue<std::shared_ptr<const Profile>> profiles_;
  std::mutex mutex_;  // of what follows
  std::condition_variable changed_;
  Labels labels_;
  bool done_ = false;

  std::thread thread_;  // last: it uses all of the above
};

}  // namespace profd
