#pragma once

#include <chrono>
#include <memory>

#include "daemon/service/config.h"
#include "daemon/service/counters.h"
#include "daemon/service/file_writer.h"
#include "daemon/service/http_api.h"
#include "daemon/service/http_server.h"
#include "daemon/service/naming_thread.h"
#include "daemon/service/profile_hub.h"
#include "daemon/service/push_sink.h"
#include "ksym/base/result.h"

namespace profd {

// What becomes of samples behind the capture: names, and then files, HTTP's
// clients and receivers. Used by the capture's thread.
class ServiceOutputs {
 public:
  // Opens sockets and spools and starts the threads. The counters must live
  // longer.
  static ksym::Result<std::unique_ptr<ServiceOutputs>> Start(
      const ServiceConfig& config, ServiceCounters& counters);

  NamingThread& naming() { return *naming_; }
  const NamingThread& naming() const { return *naming_; }

  // From one configuration to the next. What cannot change stays as it was in
  // `to`, and is said.
  void Configure(const ServiceConfig& from, ServiceConfig& to);

  // Cuts HTTP's clients off.
  void CloseHttp();
  // Whether all that was sampled is in files and spools before the deadline;
  // nothing may be given after it.
  bool Finish(std::chrono::steady_clock::time_point deadline);
  // After Finish(): false while a sender cannot be interrupted.
  bool FinishSenders(std::chrono::steady_clock::time_point deadline);

 private:
  explicit ServiceOutputs(ServiceCounters& counters) : counters_(counters) {}
  ksym::Status StartHttp(const ServiceConfig& config);
  ksym::Status StartPush(const ServiceConfig& config);
  void StartThreads(const ServiceConfig& config);

  ServiceCounters& counters_;
  std::unique_ptr<ProfileHub> hub_;
  std::unique_ptr<HttpApi> api_;      // asks hub_
  std::unique_ptr<HttpServer> http_;  // asks api_
  std::unique_ptr<FileWriter> writer_;
  std::unique_ptr<PushSink> push_;        // null: nothing is pushed
  std::unique_ptr<NamingThread> naming_;  // gives to the three above
};

}  // namespace profd
