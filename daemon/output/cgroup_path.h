// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "daemon/output/options.h"

namespace profd {

// What a cgroup's path tells: views into it.
struct CgroupParts {
  // The systemd unit that the process belongs to, "nginx.service"; of what a
  // user's own manager started that manager's, "user@1000.service". Empty if
  // the path names none.
  std::string_view unit;
  // As container runtimes write it into the path: 64 hexadecimal digits, of
  // Amazon's ECS a task's id, of LXC a name. The innermost one; empty if none.
  std::string_view container_id;
  // The uid of the Kubernetes pod, as kubelet writes it into the path, with
  // hyphens or with underscores; empty if none.
  std::string_view pod_uid;
};
CgroupParts ParseCgroupPath(std::string_view path);

// A pod's uid as Kubernetes writes it, with hyphens: systemd's form of the name
// has underscores.
std::string HyphenatedUid(std::string_view uid);

// The uid of the pod in a cgroup's path, with hyphens; empty if none.
std::string PodUidOf(std::string_view path);

// The pod and the container that root alone can have put a process into. A user
// to whom a part of the tree was given, as systemd gives one to each user's
// manager, and what runs in a container can make cgroups with any name below:
// the outermost pod and container count, and none below a service or a user's
// slice. Containers' ids have 64 digits here. A container in a container that
// is of no pod is neither.
struct CgroupOwner {
  std::string_view pod_uid;  // as in CgroupParts
  std::string_view container_id;
};
CgroupOwner OwnerInCgroupPath(std::string_view path);

// The labels of those wanted that the path gives, by key: views into it. Empty
// for an empty path.
std::vector<std::pair<std::string_view, std::string_view>> CgroupLabels(
    std::string_view path, const SampleLabels& wanted);

}  // namespace profd
