// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <chrono>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/labels/container_key.h"
#include "daemon/labels/container_state.h"
#include "daemon/labels/trusted_directory.h"

namespace profd {

// Finds what containers are called in the files that kubelet, Docker and Podman
// keep on this machine. Not thread-safe; reads disks, which may be slow.
class ContainerFiles {
 public:
  // Empty: not looked at.
  struct Directories {
    std::string logs;    // of kubelet, with "pods" and "containers" in it
    std::string docker;  // a directory for each container, named by its id
    std::string podman;  // with "containers.json" in it

    friend bool operator==(const Directories&, const Directories&) = default;
  };
  using Clock = std::chrono::steady_clock;

  static constexpr size_t kMaxDockerBytes = size_t{1} << 20;
  static constexpr size_t kMaxPodmanBytes = size_t{16} << 20;
  // Podman's lists have all containers, and change with each.
  static constexpr std::chrono::seconds kPodmanPeriod{5};

  explicit ContainerFiles(Directories directories)
      : directories_(std::move(directories)) {}

  // The names of those containers, in the same order. A container that is of no
  // pod is Docker's or Podman's; where both have it there is no name.
  std::vector<ContainerNames> Find(std::span<const ContainerKey> wanted,
                                   Clock::time_point now);
  // Forgets what is known of a container's file.
  void Forget(const ContainerKey& key) { docker_.erase(key.container_id); }

 private:
  // A file that was read, and what came of it.
  struct DockerFile {
    FileStamp stamp;
    ContainerNames names;
  };
  static constexpr std::array<std::string_view, 2> kPodmanFiles = {
      "containers.json", "volatile-containers.json"};
  struct PodmanFile {
    std::optional<FileStamp> stamp = {};
    NameResult result = NameResult::kNotFound;  // of what it lacks
    ContainerNamesById names = {};
  };

  ContainerNames FindByEngine(const std::string& id, Clock::time_point now);
  ContainerNames FindDocker(const std::string& id);
  ContainerNames FindPodman(const std::string& id, Clock::time_point now);
  void ReadPodman(Clock::time_point now);

  const Directories directories_;
  std::map<std::string, DockerFile> docker_;  // by id
  std::array<PodmanFile, kPodmanFiles.size()> podman_;
  std::optional<Clock::time_point> podman_read_;
};

}  // namespace profd
