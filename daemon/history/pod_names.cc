// SPDX-License-Identifier: Apache-2.0
#include "daemon/history/pod_names.h"

#include <algorithm>
#include <initializer_list>

#include "daemon/output/cgroup_path.h"
#include "ksym/base/bounded_name.h"
#include "ksym/base/printable.h"

namespace profd::history {
namespace {

// The pod that root alone can have put it into: what runs in a container can
// make cgroups that are called like another pod's.
std::string OwningPodUid(std::string_view cgroup) {
  std::string uid(OwnerInCgroupPath(cgroup).pod_uid);
  std::ranges::replace(uid, '_', '-');
  return uid;
}

// The texts that are not empty with slashes between them, as long as one text.
std::string JoinNames(std::initializer_list<std::string_view> texts) {
  std::string joined;
  for (const std::string_view text : texts) {
    if (text.empty()) continue;
    if (!joined.empty()) joined += '/';
    joined += text;
  }
  std::string room;
  return std::string(ksym::BoundName(joined, room));
}

bool BeginsId(std::string_view id, std::string_view wanted) {
  return !id.empty() &&
         (id == wanted || (wanted.size() >= PodNames::kLeastIdCharacters &&
                           id.starts_with(wanted)));
}

}  // namespace

bool IsText(std::string_view stored, std::string_view wanted) {
  if (stored == wanted) return true;
  if (ksym::IsPrintableAscii(stored)) return false;
  return ksym::Printable(stored) == wanted;
}

PodNames::PodNames(const Tables& tables) : tables_(tables) {
  for (const CgroupName& name : tables.cgroup_names) {
    names_[name.cgroup] = &name;
    if (name.pod == 0) continue;
    const std::string uid = OwningPodUid(Text(name.cgroup));
    if (!uid.empty()) pods_[uid] = &name;
  }
}

const CgroupName* PodNames::FindContainer(uint32_t cgroup) const {
  const auto found = names_.find(cgroup);
  return found == names_.end() ? nullptr : found->second;
}

const CgroupName* PodNames::FindPod(uint32_t cgroup) const {
  if (const CgroupName* own = FindContainer(cgroup)) {
    // Its own names count, also where they say that it is of no pod.
    return own->pod == 0 ? nullptr : own;
  }
  if (pods_.empty()) return nullptr;
  const auto found = pods_.find(OwningPodUid(Text(cgroup)));
  return found == pods_.end() ? nullptr : found->second;
}

std::string PodNames::PodOf(uint32_t cgroup) const {
  if (const CgroupName* name = FindPod(cgroup)) {
    return JoinNames({Text(name->pod_namespace), Text(name->pod)});
  }
  return PodUidOf(Text(cgroup));
}

std::string PodNames::ContainerOf(uint32_t cgroup) const {
  const CgroupName* const name = FindContainer(cgroup);
  if (name != nullptr && name->container != 0) {
    return JoinNames(
        {Text(name->pod_namespace), Text(name->pod), Text(name->container)});
  }
  return std::string(ParseCgroupPath(Text(cgroup)).container_id);
}

bool PodNames::IsOfPod(uint32_t cgroup, std::string_view wanted) const {
  const CgroupName* const name = FindPod(cgroup);
  return (name != nullptr &&
          (IsText(Text(name->pod), wanted) || IsText(PodOf(cgroup), wanted))) ||
         BeginsId(PodUidOf(Text(cgroup)), wanted);
}

bool PodNames::IsOfContainer(uint32_t cgroup, std::string_view wanted) const {
  const CgroupName* const name = FindContainer(cgroup);
  return (name != nullptr && name->container != 0 &&
          (IsText(Text(name->container), wanted) ||
           IsText(ContainerOf(cgroup), wanted))) ||
         BeginsId(ParseCgroupPath(Text(cgroup)).container_id, wanted);
}

LabelSet PodNames::LabelsOf(uint32_t cgroup) const {
  LabelSet labels;
  const auto add = [&](std::string_view key, uint32_t text) {
    if (text != 0) {
      labels.push_back(
          {.key = std::string(key), .value = std::string(Text(text))});
    }
  };
  if (const CgroupName* pod = FindPod(cgroup)) {
    add(kNamespaceLabel, pod->pod_namespace);
    add(kPodLabel, pod->pod);
  }
  if (const CgroupName* name = FindContainer(cgroup)) {
    add(name->pod == 0 ? kContainerLabel : kPodContainerLabel, name->container);
  }
  Normalize(labels);
  return labels;
}

}  // namespace profd::history
