// SPDX-License-Identifier: Apache-2.0
#include "daemon/output/cgroup_path.h"

#include <algorithm>
#include <array>

#include "ksym/base/text.h"

namespace profd {
namespace {

constexpr size_t kContainerIdDigits = 64;
constexpr size_t kEcsTaskDigits = 32;

// The suffixes of units that can have processes.
constexpr auto kUnitSuffixes = std::to_array<std::string_view>(
    {".service", ".scope", ".socket", ".mount", ".swap"});

bool IsUnit(std::string_view name) {
  return std::ranges::any_of(kUnitSuffixes, [&](std::string_view suffix) {
    return name.size() > suffix.size() && name.ends_with(suffix);
  });
}

bool IsHex(std::string_view text) {
  return text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

bool IsDigits(std::string_view text) {
  return !text.empty() &&
         text.find_first_not_of("0123456789") == std::string_view::npos;
}

// "docker-ID.scope", "cri-containerd-ID.scope", "SLICE:crio:ID", "ID",
// "TASK-NUMBER" (ECS), "lxc.payload.NAME". None for a runtime's monitor, which
// is outside of its container.
std::string_view ContainerIdIn(std::string_view name) {
  constexpr std::string_view kLxc = "lxc.payload.";
  if (name.starts_with(kLxc)) return name.substr(kLxc.size());
  if (name.contains("-conmon-")) return {};
  if (name.ends_with(".scope")) name.remove_suffix(6);
  const size_t separator = name.find_last_of("-:");
  if (separator == kEcsTaskDigits && IsHex(name.substr(0, separator)) &&
      IsDigits(name.substr(separator + 1))) {
    return name;
  }
  if (separator != std::string_view::npos) name.remove_prefix(separator + 1);
  const bool is_id = name.size() == kContainerIdDigits && IsHex(name);
  return is_id ? name : std::string_view();
}

// "kubepods-burstable-podUID.slice", "podUID": 36 characters, or of pods that
// the node's own files describe 32.
std::string_view PodUidIn(std::string_view name) {
  constexpr std::string_view kSlice = ".slice";
  if (name.ends_with(kSlice)) {
    name.remove_suffix(kSlice.size());
    name.remove_prefix(name.rfind('-') + 1);
  }
  if (!name.starts_with("pod")) return {};
  name.remove_prefix(3);
  const bool is_uid =
      (name.size() == 36 || name.size() == 32) &&
      name.find_first_not_of("0123456789abcdef-_") == std::string_view::npos;
  return is_uid ? name : std::string_view();
}

}  // namespace

CgroupParts ParseCgroupPath(std::string_view path) {
  CgroupParts parts;
  while (!path.empty()) {
    std::string_view name = ksym::TakeField(path, '/');
    const std::string_view container = ContainerIdIn(name);
    if (!container.empty()) parts.container_id = container;
    const std::string_view pod = PodUidIn(name);
    if (!pod.empty()) parts.pod_uid = pod;
    // systemd puts a '_' before names that the kernel's own could be.
    if (name.starts_with('_')) name.remove_prefix(1);
    // The outermost one: below a user's manager there are units of the user's
    // own.
    if (parts.unit.empty() && IsUnit(name)) parts.unit = name;
  }
  return parts;
}

std::string HyphenatedUid(std::string_view uid) {
  std::string text(uid);
  std::ranges::replace(text, '_', '-');
  return text;
}

std::string PodUidOf(std::string_view path) {
  return HyphenatedUid(ParseCgroupPath(path).pod_uid);
}

CgroupOwner OwnerInCgroupPath(std::string_view path) {
  CgroupOwner owner;
  for (std::string_view rest = path; !rest.empty();) {
    const std::string_view name = ksym::TakeField(rest, '/');
    if (owner.pod_uid.empty()) owner.pod_uid = PodUidIn(name);
    const std::string_view container = ContainerIdIn(name);
    if (container.size() == kContainerIdDigits) {
      owner.container_id = container;
      break;
    }
    // What is below may be anybody's.
    if (IsUnit(name) || name == "user.slice") break;
  }
  const bool is_in_another =
      owner.pod_uid.empty() &&
      owner.container_id != ParseCgroupPath(path).container_id;
  return is_in_another ? CgroupOwner{} : owner;
}

std::vector<std::pair<std::string_view, std::string_view>> CgroupLabels(
    std::string_view path, const SampleLabels& wanted) {
  std::vector<std::pair<std::string_view, std::string_view>> labels;
  if (path.empty()) return labels;
  const CgroupParts parts = ParseCgroupPath(path);
  if (wanted.cgroup) labels.emplace_back("cgroup", path);
  if (wanted.unit && !parts.unit.empty()) {
    labels.emplace_back("unit", parts.unit);
  }
  if (wanted.container_id && !parts.container_id.empty()) {
    labels.emplace_back("container_id", parts.container_id);
  }
  return labels;
}

}  // namespace profd
