// SPDX-License-Identifier: Apache-2.0
#pragma once

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

// The labels of those wanted that the path gives, by key: views into it. Empty
// for an empty path.
std::vector<std::pair<std::string_view, std::string_view>> CgroupLabels(
    std::string_view path, const SampleLabels& wanted);

}  // namespace profd
