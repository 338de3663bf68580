// SPDX-License-Identifier: Apache-2.0
#include "daemon/labels/pod_logs.h"

#include <algorithm>
#include <map>
#include <utility>

#include "daemon/labels/trusted_directory.h"
#include "ksym/base/text.h"

namespace profd {
namespace {

constexpr std::string_view kLogSuffix = ".log";
constexpr size_t kIdDigits = 64;
// RFC 1123's, as Kubernetes checks them.
constexpr size_t kMaxNamespaceBytes = 63;
constexpr size_t kMaxPodBytes = 253;
constexpr size_t kMaxContainerBytes = 63;

constexpr std::string_view kHexDigits = "0123456789abcdef";

bool HasOnly(std::string_view text, std::string_view characters) {
  return text.find_first_not_of(characters) == std::string_view::npos;
}

// Lower case letters, digits, hyphens and, in a pod's, dots; neither of the
// latter two at an end.
bool IsDnsName(std::string_view name, size_t max_bytes, bool with_dots) {
  constexpr std::string_view kAll = "abcdefghijklmnopqrstuvwxyz0123456789-.";
  if (name.empty() || name.size() > max_bytes) return false;
  if (!HasOnly(name, with_dots ? kAll : kAll.substr(0, kAll.size() - 1))) {
    return false;
  }
  const auto ends_well = [](char c) { return c != '-' && c != '.'; };
  return ends_well(name.front()) && ends_well(name.back());
}

bool IsNamespace(std::string_view name) {
  return IsDnsName(name, kMaxNamespaceBytes, /*with_dots=*/false);
}
bool IsPod(std::string_view name) {
  return IsDnsName(name, kMaxPodBytes, /*with_dots=*/true);
}
bool IsContainer(std::string_view name) {
  return IsDnsName(name, kMaxContainerBytes, /*with_dots=*/false);
}

bool IsUid(std::string_view text) {
  if (text.size() == 32) return HasOnly(text, kHexDigits);
  return text.size() == 36 && HasOnly(text, "0123456789abcdef-");
}

// One pod that is wanted, and what its directories say.
struct Pod {
  NameResult result = NameResult::kNotFound;
  std::string directory = {};  // its name, if kFound
};
using Pods = std::map<std::string, Pod, std::less<>>;

Pods FindPods(const TrustedDirectory& directories,
              std::span<const ContainerKey> wanted) {
  Pods pods;
  for (const ContainerKey& key : wanted) pods[key.pod_uid];
  const auto listed = directories.ForEachName([&](const std::string& name) {
    const std::string_view uid =
        std::string_view(name).substr(name.rfind('_') + 1);
    const auto found = pods.find(uid);
    if (found == pods.end() || !directories.HasDirectory(name)) return;
    Pod& pod = found->second;
    // A second one with that uid, or one that kubelet has not made.
    const bool is_right =
        pod.result == NameResult::kNotFound && ParsePodDirectory(name);
    pod = {.result = is_right ? NameResult::kFound : NameResult::kContradictory,
           .directory = name};
  });
  // What was not seen might contradict.
  if (!listed) {
    for (auto& [uid, pod] : pods) pod.result = NameResultOf(listed.error());
  }
  return pods;
}

// One container that is wanted, and what links say.
struct Container {
  const ContainerKey* key = nullptr;
  const Pod* pod = nullptr;
  NameResult result = NameResult::kPodOnly;
  std::string name = {};  // if kFound
};

// Whether a link tells the truth about that container, as far as this can be
// seen.
bool Agrees(const ContainerLink& link, const ContainerLog& log,
            const Container& container) {
  return log.container == link.container && log.directory.pod == link.pod &&
         log.directory.name_space == link.name_space &&
         log.directory.uid == container.key->pod_uid &&
         ParsePodDirectory(container.pod->directory) == log.directory;
}

void AddLink(const TrustedDirectory& links, const TrustedDirectory& directories,
             const std::string& name, Container& container) {
  const auto target = links.ReadLink(name);
  if (!target) {
    // It is no link, or somebody else's.
    if (target.error().code() == ksym::ErrorCode::kPermission) {
      container.result = NameResult::kNotTrusted;
    }
    return;
  }
  const auto link = ParseContainerLink(name);
  const auto log = ParseContainerLog(*target);
  const bool is_right = container.result == NameResult::kPodOnly && link &&
                        log && Agrees(*link, *log, container);
  if (!is_right) {
    container.result = NameResult::kContradictory;
    return;
  }
  if (!directories.HasDirectory(container.pod->directory + "/" +
                                std::string(link->container))) {
    return;
  }
  container.result = NameResult::kFound;
  container.name = link->container;
}

// "...-ID.log"
std::string_view IdInLinkName(std::string_view name) {
  if (!name.ends_with(kLogSuffix)) return {};
  name.remove_suffix(kLogSuffix.size());
  return name.size() < kIdDigits ? std::string_view()
                                 : name.substr(name.size() - kIdDigits);
}

void FindLinks(const std::string& directory,
               const TrustedDirectory& directories,
               std::vector<Container>& containers) {
  std::map<std::string_view, Container*> by_id;
  for (Container& container : containers) {
    if (container.pod->result == NameResult::kFound &&
        !container.key->container_id.empty()) {
      by_id.emplace(container.key->container_id, &container);
    }
  }
  if (by_id.empty()) return;
  const auto links = TrustedDirectory::Open(directory + "/containers");
  // Without it there are pods' names alone.
  if (!links) {
    const NameResult result = NameResultOf(links.error());
    if (result == NameResult::kNotFound) return;
    for (const auto& [id, container] : by_id) container->result = result;
    return;
  }
  const auto listed = links->ForEachName([&](const std::string& name) {
    const auto found = by_id.find(IdInLinkName(name));
    if (found == by_id.end()) return;
    AddLink(*links, directories, name, *found->second);
  });
  if (listed) return;
  for (const auto& [id, container] : by_id) {
    container->result = NameResultOf(listed.error());
  }
}

ContainerNames NamesOf(const Container& container) {
  const auto directory = ParsePodDirectory(container.pod->directory);
  if (container.pod->result != NameResult::kFound || !directory) {
    return {.result = container.pod->result};
  }
  ContainerNames names = {.result = container.result};
  // What contradicts about the container may be a lie about the pod.
  if (names.result == NameResult::kContradictory) return names;
  names.labels = {
      {.key = std::string(kNamespaceLabel),
       .value = std::string(directory->name_space)},
      {.key = std::string(kPodLabel), .value = std::string(directory->pod)}};
  if (names.result == NameResult::kFound) {
    names.labels.push_back(
        {.key = std::string(kPodContainerLabel), .value = container.name});
  }
  Normalize(names.labels);
  return names;
}

}  // namespace

std::optional<PodDirectory> ParsePodDirectory(std::string_view name) {
  PodDirectory directory = {};
  directory.name_space = ksym::TakeField(name, '_');
  directory.pod = ksym::TakeField(name, '_');
  directory.uid = name;
  if (!IsNamespace(directory.name_space) || !IsPod(directory.pod) ||
      !IsUid(directory.uid)) {
    return std::nullopt;
  }
  return directory;
}

std::optional<ContainerLink> ParseContainerLink(std::string_view name) {
  ContainerLink link = {};
  link.id = IdInLinkName(name);
  if (link.id.empty() || !HasOnly(link.id, kHexDigits)) return std::nullopt;
  name.remove_suffix(kIdDigits + kLogSuffix.size());
  if (!name.ends_with('-')) return std::nullopt;
  name.remove_suffix(1);
  link.pod = ksym::TakeField(name, '_');
  link.name_space = ksym::TakeField(name, '_');
  link.container = name;
  if (!IsPod(link.pod) || !IsNamespace(link.name_space) ||
      !IsContainer(link.container)) {
    return std::nullopt;
  }
  return link;
}

std::optional<ContainerLog> ParseContainerLog(std::string_view target) {
  const auto take_last = [&] {
    const size_t at = target.rfind('/');
    const bool has_more = at != std::string_view::npos;
    const std::string_view last = target.substr(has_more ? at + 1 : 0);
    target = target.substr(0, has_more ? at : 0);
    return last;
  };
  std::string_view file = take_last();
  if (!file.ends_with(kLogSuffix)) return std::nullopt;
  file.remove_suffix(kLogSuffix.size());
  if (file.empty() || !HasOnly(file, "0123456789")) return std::nullopt;
  ContainerLog log = {};
  log.container = take_last();
  const auto directory = ParsePodDirectory(take_last());
  if (!directory || !IsContainer(log.container)) return std::nullopt;
  log.directory = *directory;
  return log;
}

std::vector<ContainerNames> FindPodNames(const std::string& directory,
                                         std::span<const ContainerKey> wanted) {
  const auto directories = TrustedDirectory::Open(directory + "/pods");
  if (!directories) {
    return std::vector<ContainerNames>(
        wanted.size(), {.result = NameResultOf(directories.error())});
  }
  const Pods pods = FindPods(*directories, wanted);
  std::vector<Container> containers;
  containers.reserve(wanted.size());
  for (const ContainerKey& key : wanted) {
    containers.push_back({.key = &key, .pod = &pods.at(key.pod_uid)});
  }
  FindLinks(directory, *directories, containers);
  std::vector<ContainerNames> names;
  names.reserve(containers.size());
  for (const Container& container : containers) {
    names.push_back(NamesOf(container));
  }
  return names;
}

}  // namespace profd
