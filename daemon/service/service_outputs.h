// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <memory>

#include "daemon/service/config.h"
#include "daemon/service/counters.h"
#include "daemon/service/file_writer.h"
#include "daemon/service/history_thread.h"
#include "daemon/service/http_api.h"
#include "daemon/service/http_server.h"
#include "daemon/service/naming_thread.h"
#include "daemon/service/profile_hub.h"
#include "daemon/service/push_sink.h"
#include "ksym/base/result.h"
#include "ksym/process/file_opener.h"

namespace profd {

// What becomes of samples behind the capture: names, and then files, the
// history, HTTP's clients and receivers. Used by the capture's thread.
class ServiceOutputs {
 public:
  // A configuration that is about to come into force, with all that could fail
  // done.
  struct Change {
    HttpServer::Change http;
    PushSink::Change push;
  };

  // Opens sockets and spools and starts the threads. The counters must live
  // longer.
  static ksym::Result<std::unique_ptr<ServiceOutputs>> Start(
      const ServiceConfig& config, ServiceCounters& counters,
      std::shared_ptr<ksym::FileOpener> opener);

  NamingThread& naming() { return *naming_; }
  const NamingThread& naming() const { return *naming_; }

  // Opens what it needs and does not have; nothing changes yet.
  ksym::Result<Change> Prepare(const ServiceConfig& config);
  void Apply(const ServiceConfig& config, Change change);
  // For a configuration with the same sockets and receivers.
  void Configure(const ServiceConfig& config);

  // Cuts HTTP's clients off.
  void CloseHttp();
  // Whether all that was sampled is in files, the history and spools before the
  // deadline; nothing may be given after it.
  bool Finish(std::chrono::steady_clock::time_point deadline);
  // After Finish(): false while a sender cannot be interrupted.
  bool FinishSenders(std::chrono::steady_clock::time_point deadline);

 private:
  ServiceOutputs(const ServiceConfig& config, ServiceCounters& counters,
                 std::shared_ptr<ksym::FileOpener> opener);
  void StartNaming(const ServiceConfig& config);

  ServiceCounters& counters_;
  const std::shared_ptr<ksym::FileOpener> opener_;
  ServiceConfig config_;  // in force
  ProfileHub hub_;
  HttpApi api_;                       // asks hub_
  std::unique_ptr<HttpServer> http_;  // asks api_
  FileWriter writer_;
  HistoryThread history_;
  PushSink push_;
  std::unique_ptr<NamingThread> naming_;  // gives to all of the above
};

}  // namespace profd
