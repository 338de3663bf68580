// SPDX-License-Identifier: Apache-2.0
#include "daemon/labels/container_files.h"

#include <utility>

#include "daemon/labels/pod_logs.h"

namespace profd {
namespace {

ContainerNames NamedContainer(std::string name) {
  return {.result = NameResult::kFound,
          .labels = {
              {.key = std::string(kContainerLabel), .value = std::move(name)}}};
}

}  // namespace

std::vector<ContainerNames> ContainerFiles::Find(
    std::span<const ContainerKey> wanted, Clock::time_point now) {
  std::vector<ContainerNames> names(wanted.size());
  std::vector<ContainerKey> of_pods;
  std::vector<size_t> places;
  for (size_t i = 0; i < wanted.size(); ++i) {
    if (wanted[i].pod_uid.empty()) {
      names[i] = FindByEngine(wanted[i].container_id, now);
    } else {
      of_pods.push_back(wanted[i]);
      places.push_back(i);
    }
  }
  if (of_pods.empty() || directories_.logs.empty()) return names;
  std::vector<ContainerNames> found = FindPodNames(directories_.logs, of_pods);
  for (size_t i = 0; i < places.size(); ++i) {
    names[places[i]] = std::move(found[i]);
  }
  return names;
}

ContainerNames ContainerFiles::FindByEngine(const std::string& id,
                                            Clock::time_point now) {
  ContainerNames docker = FindDocker(id);
  ContainerNames podman = FindPodman(id, now);
  const bool is_dockers = docker.result == NameResult::kFound;
  const bool is_podmans = podman.result == NameResult::kFound;
  if (is_dockers && is_podmans) return {.result = NameResult::kContradictory};
  // Neither has it: what hindered the first says more than "not there".
  const bool has_docker_more = docker.result != NameResult::kNotFound;
  return is_dockers || (!is_podmans && has_docker_more) ? docker : podman;
}

ContainerNames ContainerFiles::FindDocker(const std::string& id) {
  if (directories_.docker.empty()) return {};
  const auto directory = TrustedDirectory::Open(directories_.docker);
  if (!directory) return {.result = NameResultOf(directory.error())};
  const std::string path = id + "/config.v2.json";
  const auto stamp = directory->StampOf(path);
  if (!stamp) {
    docker_.erase(id);
    return {.result = NameResultOf(stamp.error())};
  }
  DockerFile& file = docker_[id];
  if (file.stamp == *stamp) return file.names;
  // After its stamp: a file that changes while it is read has another one the
  // next time, and is read again.
  const auto text = directory->ReadFile(path, kMaxDockerBytes);
  if (!text) {
    docker_.erase(id);
    return {.result = NameResultOf(text.error())};
  }
  auto name = ParseDockerName(*text, id);
  file = {.stamp = *stamp,
          .names = name ? NamedContainer(std::move(*name))
                        : ContainerNames{.result = NameResult::kUnreadable}};
  return file.names;
}

ContainerNames ContainerFiles::FindPodman(const std::string& id,
                                          Clock::time_point now) {
  if (directories_.podman.empty()) return {};
  ReadPodman(now);
  ContainerNames names;
  for (const PodmanFile& file : podman_) {
    const auto found = file.names.find(id);
    if (found == file.names.end()) {
      if (names.result == NameResult::kNotFound) names.result = file.result;
      continue;
    }
    // It is in one of them.
    if (names.result == NameResult::kFound) {
      return {.result = NameResult::kContradictory};
    }
    names = NamedContainer(found->second);
  }
  return names;
}

void ContainerFiles::ReadPodman(Clock::time_point now) {
  if (podman_read_ && now < *podman_read_ + kPodmanPeriod) return;
  podman_read_ = now;
  const auto directory = TrustedDirectory::Open(directories_.podman);
  for (size_t i = 0; i < podman_.size(); ++i) {
    PodmanFile& file = podman_[i];
    if (!directory) {
      file = {.result = NameResultOf(directory.error())};
      continue;
    }
    const std::string path(kPodmanFiles[i]);
    const auto stamp = directory->StampOf(path);
    if (stamp && file.stamp == *stamp) continue;
    file = {};
    if (!stamp) {
      file.result = NameResultOf(stamp.error());
      continue;
    }
    // Before it is read, and kept if that fails: the same bytes would fail
    // again.
    file.stamp = *stamp;
    const auto text = directory->ReadFile(path, kMaxPodmanBytes);
    auto names =
        text ? ParsePodmanNames(*text)
             : ksym::Result<ContainerNamesById>(std::unexpected(text.error()));
    if (names) {
      file.names = std::move(*names);
    } else {
      file.result = NameResultOf(names.error());
    }
  }
}

}  // namespace profd
