// SPDX-License-Identifier: Apache-2.0
#include "daemon/output/resource_owner.h"

#include <string_view>

#include "daemon/output/cgroup_path.h"
#include "ksym/base/printable.h"

namespace profd {
namespace {

// As the specification has it of services that nobody named.
constexpr std::string_view kUnknownService = "unknown_service";
// As container runtimes shorten ids.
constexpr size_t kShortIdDigits = 12;

}  // namespace

ResourceOwner OwnerOf(const Profile& profile, const ProfileSample& sample,
                      const SampleLabels& labels) {
  ResourceOwner owner;
  const CgroupParts parts = ParseCgroupPath(profile.String(sample.cgroup));
  if (labels.container_id) {
    owner.container_id = ksym::Printable(parts.container_id);
    owner.pod_uid = HyphenatedUid(ksym::Printable(parts.pod_uid));
  }
  if (labels.unit && owner.container_id.empty()) {
    owner.unit = ksym::Printable(parts.unit);
  }
  for (const auto& [key, value] : profile.LabelsOf(sample)) {
    owner.labels.push_back({.key = ksym::Printable(profile.String(key)),
                            .value = ksym::Printable(profile.String(value))});
  }
  return owner;
}

std::string ServiceName(const ResourceOwner& owner) {
  for (const std::string_view key :
       {kServiceLabel, kPodContainerLabel, kContainerLabel}) {
    const std::string_view name = FindLabel(owner.labels, key);
    if (!name.empty()) return std::string(name);
  }
  if (!owner.container_id.empty()) {
    return owner.container_id.substr(0, kShortIdDigits);
  }
  if (owner.unit.empty()) return std::string(kUnknownService);
  return owner.unit.substr(0, owner.unit.rfind('.'));
}

}  // namespace profd
