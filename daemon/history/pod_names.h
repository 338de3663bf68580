// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>

#include "daemon/history/tables.h"
#include "daemon/profile/label_set.h"

namespace profd::history {

// What the pods and containers of one file are called, by the cgroups of its
// series. The tables must live longer and stay as they are.
// Cost: once over the names.
class PodNames {
 public:
  explicit PodNames(const Tables& tables);

  // "namespace/pod", or the pod's uid where nobody said its name; empty: of no
  // pod. The names of a cgroup without any are those of others of its pod.
  std::string PodOf(uint32_t cgroup) const;
  // "namespace/pod/container", of no pod the container's name, or the
  // container's id; empty: of no container.
  std::string ContainerOf(uint32_t cgroup) const;
  // By the name alone, with its namespace, or by the uid.
  bool IsOfPod(uint32_t cgroup, std::string_view wanted) const;
  // By the name alone, with those of namespace and pod, or by the id.
  bool IsOfContainer(uint32_t cgroup, std::string_view wanted) const;
  // As samples have them.
  LabelSet LabelsOf(uint32_t cgroup) const;

  // So much of the beginning of a uid or an id stands for it: any less could be
  // meant as a name.
  static constexpr size_t kLeastIdCharacters = 8;

 private:
  std::string_view Text(uint32_t id) const { return tables_.strings.Get(id); }
  const CgroupName* FindContainer(uint32_t cgroup) const;
  const CgroupName* FindPod(uint32_t cgroup) const;

  const Tables& tables_;
  std::unordered_map<uint32_t, const CgroupName*> names_;       // by cgroup
  std::map<std::string, const CgroupName*, std::less<>> pods_;  // by uid
};

// As it is stored or as it is printed: who asks has seen it printed.
bool IsText(std::string_view stored, std::string_view wanted);

}  // namespace profd::history
