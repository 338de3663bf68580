#include "daemon/service/service_outputs.h"

#include <utility>

#include "daemon/service/labels.h"
#include "daemon/service/log.h"

namespace profd {
namespace {

using ksym::Fail;
using ksym::Status;

NamingThread::Settings NamingSettings(const ServiceConfig& config) {
  return {.cache_bytes = config.symbols.cache_bytes,
          .demangle = config.symbols.demangle};
}

FileWriter::Settings FileSettings(const ServiceConfig& config) {
  return {
      .directory = config.files.directory,
      .format = config.files.format,
      .limits = {.max_bytes = config.files.max_bytes,
                 .max_age = std::chrono::seconds(config.files.max_age_seconds)},
      .labels = Labels::Of(config.labels)};
}

}  // namespace

ksym::Result<std::unique_ptr<ServiceOutputs>> ServiceOutputs::Start(
    const ServiceConfig& config, ServiceCounters& counters) {
  std::unique_ptr<ServiceOutputs> outputs(new ServiceOutputs(counters));
  auto listening = outputs->StartHttp(config);
  if (!listening) return Fail(std::move(listening.error()));
  auto pushing = outputs->StartPush(config);
  if (!pushing) return Fail(std::move(pushing.error()));
  outputs->StartThreads(config);
  return outputs;
}

Status ServiceOutputs::StartHttp(const ServiceConfig& config) {
  HttpServer::Settings settings = {.listen = config.http.listen, .token = {}};
  if (!config.http.token_file.empty()) {
    auto token = ReadToken(config.http.token_file);
    if (!token) return Fail(std::move(token.error()));
    settings.token = std::move(*token);
  }
  hub_ = std::make_unique<ProfileHub>(config.http.recent_bytes);
  api_ = std::make_unique<HttpApi>(counters_, *hub_);
  api_->SetLabels(Labels::Of(config.labels));
  if (settings.listen.empty()) return {};
  auto server = HttpServer::Start(
      settings,
      [this](const HttpQuestion& question) { return api_->Answer(question); },
      counters_);
  if (!server) return Fail(std::move(server.error()));
  http_ = std::move(*server);
  return {};
}

Status ServiceOutputs::StartPush(const ServiceConfig& config) {
  if (config.push.empty()) return {};
  auto push =
      PushSink::Start({.targets = config.push,
                       .spool = {.directory = config.push_spool.directory,
                                 .max_bytes = config.push_spool.max_bytes}},
                      Labels::Of(config.labels), counters_);
  if (!push) return Fail(std::move(push.error()));
  push_ = std::move(*push);
  return {};
}

void ServiceOutputs::StartThreads(const ServiceConfig& config) {
  writer_ = std::make_unique<FileWriter>(FileSettings(config), counters_);
  naming_ = std::make_unique<NamingThread>(
      NamingSettings(config), counters_,
      NamingThread::Sinks{
          .part = [this](const auto& part) { hub_->AddPart(part); },
          .profile =
              [this](const auto& profile) {
                hub_->AddProfile(profile);
                writer_->Write(profile);
                if (push_) push_->Write(profile);
              }});
}

void ServiceOutputs::Configure(const ServiceConfig& from, ServiceConfig& to) {
  if (NamingSettings(to) != NamingSettings(from)) {
    naming_->Configure(NamingSettings(to));
  }
  if (to.files != from.files || to.labels != from.labels) {
    writer_->Configure(FileSettings(to));
    api_->SetLabels(Labels::Of(to.labels));
    if (push_) push_->SetLabels(Labels::Of(to.labels));
  }
  if (to.http != from.http) {
    Log(LogLevel::kWarning, "\"http\" changes with the next start only");
    to.http = from.http;
  }
  if (to.push != from.push || to.push_spool != from.push_spool) {
    Log(LogLevel::kWarning, "\"push\" changes with the next start only");
    to.push = from.push;
    to.push_spool = from.push_spool;
  }
}

void ServiceOutputs::CloseHttp() {
  hub_->Close();
  http_.reset();
}

bool ServiceOutputs::Finish(std::chrono::steady_clock::time_point deadline) {
  return naming_->Finish(deadline) && writer_->Finish(deadline) &&
         (!push_ || push_->Finish(deadline));
}

bool ServiceOutputs::FinishSenders(
    std::chrono::steady_clock::time_point deadline) {
  return !push_ || push_->FinishSenders(deadline);
}

}  // namespace profd
