// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/labels/container_key.h"

namespace profd {

// The directory of a pod's logs, "NAMESPACE_NAME_UID". Views into the name.
struct PodDirectory {
  std::string_view name_space;
  std::string_view pod;
  std::string_view uid;

  friend bool operator==(const PodDirectory&, const PodDirectory&) = default;
};

// As kubelet makes it (BuildPodLogsDirectory): the names are those that
// Kubernetes accepts, of at most 63 and 253 bytes, and the uid has 36
// characters, or 32 of a pod that the node's own files describe. Nothing
// otherwise.
std::optional<PodDirectory> ParsePodDirectory(std::string_view name);

// What the link "POD_NAMESPACE_CONTAINER-ID.log" to a container's log tells.
struct ContainerLink {
  std::string_view name_space;
  std::string_view pod;
  std::string_view container;
  std::string_view id;

  friend bool operator==(const ContainerLink&, const ContainerLink&) = default;
};

// As kubelet makes it (legacyLogSymlink). Nothing also where the file system's
// 255 bytes cut the id off.
std::optional<ContainerLink> ParseContainerLink(std::string_view name);

// Where such a link points to: ".../NAMESPACE_NAME_UID/CONTAINER/NUMBER.log".
struct ContainerLog {
  PodDirectory directory;
  std::string_view container;
};
std::optional<ContainerLog> ParseContainerLog(std::string_view target);

// Looks for the names of those containers, each of a pod, in a node's
// DIRECTORY/pods and DIRECTORY/containers. The answers are in the same order.
//
// A pod's names are those of the only directory with its uid. A container's is
// that of the only link with its id, if what the link is called and where it
// points to agree with each other and with that directory. Where anything
// contradicts there are no names at all. Cost: once over both directories, 0.1
// us for each entry, and some 10 us for each container.
std::vector<ContainerNames> FindPodNames(const std::string& directory,
                                         std::span<const ContainerKey> wanted);

}  // namespace profd
