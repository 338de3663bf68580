// SPDX-License-Identifier: Apache-2.0
#include "daemon/service/labels.h"

#include <unistd.h>

#include <algorithm>
#include <string_view>

namespace profd {

namespace {

bool HasWord(std::span<const std::string> words, std::string_view word) {
  return std::ranges::find(words, word) != words.end();
}

}  // namespace

Labels Labels::Of(std::span<const std::string> words) {
  const auto has = [&](std::string_view word) { return HasWord(words, word); };
  return {.of_sample = {.host = has("host"),
                        .pid = has("pid"),
                        .comm = has("comm"),
                        .cgroup = has("cgroup"),
                        .unit = has("unit"),
                        .container_id = has("container_id")},
          .tid = has("tid")};
}

LabelThread::Settings LabelSettings(const ServiceConfig& config) {
  LabelThread::Settings settings = {
      .directories = {},
      .environment = {
          .service_name =
              HasWord(config.environment_labels, "OTEL_SERVICE_NAME"),
          .resource_attributes =
              HasWord(config.environment_labels, "OTEL_RESOURCE_ATTRIBUTES")}};
  if (HasWord(config.labels, "pod")) {
    settings.directories.logs = config.containers.logs_directory;
  }
  if (HasWord(config.labels, "container_name")) {
    settings.directories.docker = config.containers.docker_directory;
    settings.directories.podman = config.containers.podman_directory;
  }
  return settings;
}

OutputOptions OptionsFor(OutputFormat format, const Labels& labels) {
  const bool by_tid = labels.tid && RowOf(format).has_threads;
  SampleLabels of_sample = labels.of_sample;
  of_sample.self_pid = static_cast<uint32_t>(::getpid());
  return {.by = by_tid ? OutputOptions::By::kTid : OutputOptions::By::kComm,
          .labels = of_sample};
}

}  // namespace profd
