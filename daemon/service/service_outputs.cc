// SPDX-License-Identifier: Apache-2.0
#include "daemon/service/service_outputs.h"

#include <utility>

#include "daemon/service/labels.h"
#include "daemon/service/log.h"

namespace profd {
namespace {

using ksym::Fail;
using ksym::Status;

NamingThread::Settings NamingSettings(
    const ServiceConfig& config, std::shared_ptr<ksym::FileOpener> opener) {
  return {.cache_bytes = config.symbols.cache_bytes,
          .demangle = config.symbols.demangle,
          .lines = config.symbols.lines,
          .inlines = config.symbols.inlines,
          .line_directory = config.stacks.cache_directory,
          .line_bytes = config.symbols.line_bytes,
          .opener = std::move(opener)};
}

FileWriter::Settings FileSettings(const ServiceConfig& config) {
  return {
      .directory = std::string(config.files.target()),
      .format = config.files.format,
      .limits = {.max_bytes = config.files.max_bytes,
                 .max_age = std::chrono::seconds(config.files.max_age_seconds)},
      .labels = Labels::Of(config.labels)};
}

HistoryThread::Settings HistorySettings(const ServiceConfig& config) {
  const ServiceConfig::History& history = config.history;
  return {
      .directory = history.enabled ? history.directory : "",
      .limits = {.max_bytes = history.max_bytes,
                 .max_age = std::chrono::seconds(history.max_age_seconds),
                 .thin_after = std::chrono::hours(history.thin_after_hours)}};
}

PushSink::Settings PushSettings(const ServiceConfig& config) {
  return {.targets = config.push,
          .spool = {.directory = config.push_spool.directory,
                    .max_bytes = config.push_spool.max_bytes}};
}

ProfileHub::Limits HubLimits(const ServiceConfig& config) {
  return {.bytes = config.http.recent_bytes,
          .seconds = config.http.recent_seconds};
}

}  // namespace

ServiceOutputs::ServiceOutputs(const ServiceConfig& config,
                               ServiceCounters& counters,
                               std::shared_ptr<ksym::FileOpener> opener)
    : counters_(counters),
      opener_(std::move(opener)),
      config_(config),
      hub_(HubLimits(config)),
      api_(counters, hub_),
      writer_(FileSettings(config), counters),
      history_(HistorySettings(config), counters),
      push_(counters) {}

ksym::Result<std::unique_ptr<ServiceOutputs>> ServiceOutputs::Start(
    const ServiceConfig& config, ServiceCounters& counters,
    std::shared_ptr<ksym::FileOpener> opener) {
  std::unique_ptr<ServiceOutputs> outputs(
      new ServiceOutputs(config, counters, std::move(opener)));
  auto server = HttpServer::Start(
      [api = &outputs->api_](const HttpRequest& request) {
        return api->Respond(request);
      },
      counters, &HttpApi::IsPublic);
  if (!server) return Fail(std::move(server.error()));
  outputs->http_ = std::move(*server);
  auto change = outputs->Prepare(config);
  if (!change) return Fail(std::move(change.error()));
  outputs->StartNaming(config);
  // Configure() sees no change in the first configuration, so these are set
  // here. Clients and senders come with Apply() only.
  outputs->api_.SetLabels(Labels::Of(config.labels));
  outputs->api_.SetHistory(HistorySettings(config).directory);
  outputs->push_.SetLabels(Labels::Of(config.labels));
  outputs->Apply(config, std::move(*change));
  return outputs;
}

void ServiceOutputs::StartNaming(const ServiceConfig& config) {
  naming_ = std::make_unique<NamingThread>(
      NamingSettings(config, opener_), counters_,
      NamingThread::Sinks{.part =
                              [this](const auto& part) {
                                hub_.AddPart(part);
                                history_.AddPart(part);
                              },
                          .profile =
                              [this](const auto& profile) {
                                hub_.AddProfile(profile);
                                writer_.Write(profile);
                                history_.EndInterval();
                                push_.Write(profile);
                              }});
}

ksym::Result<ServiceOutputs::Change> ServiceOutputs::Prepare(
    const ServiceConfig& config) {
  HttpServer::Settings settings = {.listen = config.http.listen, .token = {}};
  if (!config.http.token_file.empty()) {
    auto token = ReadToken(config.http.token_file);
    if (!token) return Fail(std::move(token.error()));
    settings.token = std::move(*token);
  }
  auto http = http_->Prepare(settings);
  if (!http) return Fail(std::move(http.error()));
  auto push = push_.Prepare(PushSettings(config));
  if (!push) return Fail(std::move(push.error()));
  return Change{.http = std::move(*http), .push = std::move(*push)};
}

void ServiceOutputs::Apply(const ServiceConfig& config, Change change) {
  Configure(config);
  http_->Apply(std::move(change.http));
  push_.Apply(std::move(change.push));
}

void ServiceOutputs::Configure(const ServiceConfig& config) {
  // New settings mean a new symbolizer, which reads all symbols anew, so none
  // are given where nothing has changed.
  if (NamingSettings(config, opener_) != NamingSettings(config_, opener_)) {
    naming_->Configure(NamingSettings(config, opener_));
  }
  if (config.files != config_.files || config.labels != config_.labels) {
    writer_.Configure(FileSettings(config));
    api_.SetLabels(Labels::Of(config.labels));
    push_.SetLabels(Labels::Of(config.labels));
  }
  if (config.history != config_.history) {
    history_.Configure(HistorySettings(config));
    api_.SetHistory(HistorySettings(config).directory);
  }
  hub_.SetLimits(HubLimits(config));
  config_ = config;
}

void ServiceOutputs::CloseHttp() {
  // Before the server, whose threads are waited for: those of live requests
  // wait in the hub.
  hub_.Close();
  http_.reset();
}

bool ServiceOutputs::Finish(std::chrono::steady_clock::time_point deadline) {
  // In the order of the flow: until naming has ended it gives to the others,
  // and they take nothing after their own end.
  return naming_->Finish(deadline) && writer_.Finish(deadline) &&
         history_.Finish(deadline) && push_.Finish(deadline);
}

bool ServiceOutputs::FinishSenders(
    std::chrono::steady_clock::time_point deadline) {
  return push_.FinishSenders(deadline);
}

}  // namespace profd
