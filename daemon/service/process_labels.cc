// SPDX-License-Identifier: Apache-2.0
#include "daemon/service/process_labels.h"

#include <string>
#include <utility>

#include "daemon/output/cgroup_path.h"

namespace profd {
namespace {

// Drains after which what was not sampled is forgotten: a minute.
constexpr uint64_t kForgetLabelsAfter = 60;

bool HasFiles(const LabelThread::Settings& settings) {
  return settings.directories != ContainerFiles::Directories{};
}

}  // namespace

ProcessLabels::ProcessLabels(LabelThread::Settings settings)
    : settings_(settings), thread_(std::move(settings)) {}

void ProcessLabels::NoteSample(const ksym::ProcessId& process,
                               std::string_view cgroup) {
  if (process.pid == 0) return;  // idle
  FindContainer(cgroup);
  FindProcess(process);
}

ProcessLabels::Container* ProcessLabels::FindContainer(
    std::string_view cgroup) {
  if (!HasFiles(settings_)) return nullptr;
  const auto known = paths_.find(cgroup);
  if (known != paths_.end()) {
    Path& path = known->second;
    path.last_seen = drains_;
    if (path.container != nullptr) path.container->last_seen = drains_;
    return path.container;
  }
  const CgroupOwner owner = OwnerInCgroupPath(cgroup);
  const bool has_owner = !owner.pod_uid.empty() || !owner.container_id.empty();
  Container* const container = has_owner ? AskForContainer(owner) : nullptr;
  // A container that there was no room for is asked for again.
  const bool is_settled = container != nullptr || !has_owner;
  if (is_settled && cgroup.size() <= kMaxPathBytes &&
      paths_.size() < kMaxPaths) {
    // Elements of a map stay where they are until they are erased: Forget() and
    // Configure() drop the paths first.
    paths_.emplace(cgroup, Path{.container = container, .last_seen = drains_});
  }
  return container;
}

ProcessLabels::Container* ProcessLabels::AskForContainer(
    const CgroupOwner& owner) {
  ContainerKey key = {.pod_uid = HyphenatedUid(owner.pod_uid),
                      .container_id = std::string(owner.container_id)};
  const auto found = containers_.find(key);
  if (found != containers_.end()) {
    found->second.last_seen = drains_;
    return &found->second;
  }
  // Also where there is no room, which is counted.
  thread_.Ask(key);
  if (containers_.size() == LabelThread::kMaxContainers) return nullptr;
  return &containers_.emplace(std::move(key), Container{.last_seen = drains_})
              .first->second;
}

ProcessLabels::Process* ProcessLabels::FindProcess(
    const ksym::ProcessId& process) {
  if (!settings_.environment.any()) return nullptr;
  const auto found = processes_.find(process);
  if (found != processes_.end()) {
    found->second.last_seen = drains_;
    return &found->second;
  }
  if (processes_.size() == kMaxProcesses) {
    thread_.CountProcessWithoutRoom();
    return nullptr;
  }
  thread_.Ask(process);
  return &processes_.emplace(process, Process{.last_seen = drains_})
              .first->second;
}

ProcessLabels::Labels ProcessLabels::LabelsOf(const ksym::ProcessId& process,
                                              std::string_view cgroup) {
  const Container* const container = FindContainer(cgroup);
  Labels of_container = container ? container->labels : nullptr;
  Process* const known = FindProcess(process);
  if (!known || !known->labels) return of_container;
  if (!of_container) return known->labels;
  if (known->of_container != of_container) {
    known->of_container = of_container;
    // What was found goes before what is said.
    known->all = std::make_shared<const LabelSet>(
        MergeLabels(*of_container, *known->labels));
  }
  return known->all;
}

void ProcessLabels::Label(RawProfile& profile) {
  TakeAnswers();
  const auto add = [&](const ksym::ProcessId& process,
                       std::string_view cgroup) {
    // In order, so that the place is the last one but for few.
    if (const Labels labels = LabelsOf(process, cgroup)) {
      profile.labels.emplace_hint(profile.labels.end(), process, labels);
    }
  };
  for (const auto& [process, cgroup] : profile.cgroups) add(process, cgroup);
  // Processes whose cgroup is not known may still have an environment.
  if (settings_.environment.any()) {
    for (const RawSample& sample : profile.samples) {
      const ksym::ProcessId& process = sample.process;
      if (process.pid == 0 || profile.cgroups.contains(process)) continue;
      add(process, {});
    }
  }
  if (++drains_ % kForgetLabelsAfter == 0) Forget();
}

void ProcessLabels::TakeAnswers() {
  LabelThread::Answers answers = thread_.Take();
  for (auto& [key, labels] : answers.containers) {
    const auto found = containers_.find(key);
    // Forgotten while the thread looked.
    if (found == containers_.end()) continue;
    found->second.labels =
        labels.empty() ? nullptr
                       : std::make_shared<const LabelSet>(std::move(labels));
  }
  for (auto& [process, labels] : answers.environments) {
    const auto found = processes_.find(process);
    if (found == processes_.end()) continue;
    Keep(found->second, std::move(labels));
  }
}

void ProcessLabels::Keep(Process& process, LabelSet labels) {
  const size_t bytes = BytesOf(labels);
  label_bytes_ -= process.bytes;
  // With the labels goes their sum with the container's, which was made of the
  // old ones.
  process = {.last_seen = process.last_seen};
  if (bytes > LabelThread::kMaxLabelBytes - label_bytes_) {
    thread_.CountProcessWithoutRoom();
    return;
  }
  label_bytes_ += bytes;
  process.bytes = bytes;
  process.labels = std::make_shared<const LabelSet>(std::move(labels));
}

void ProcessLabels::Configure(const LabelThread::Settings& settings) {
  if (settings == settings_) return;
  settings_ = settings;
  for (const auto& [key, container] : containers_) thread_.Forget(key);
  paths_.clear();
  containers_.clear();
  processes_.clear();
  label_bytes_ = 0;
  thread_.Configure(settings);
}

void ProcessLabels::Forget() {
  // Before what they point to.
  std::erase_if(paths_, [&](const auto& entry) {
    return entry.second.last_seen + kForgetLabelsAfter < drains_;
  });
  std::erase_if(containers_, [&](const auto& entry) {
    if (entry.second.last_seen + kForgetLabelsAfter >= drains_) return false;
    thread_.Forget(entry.first);
    return true;
  });
  std::erase_if(processes_, [&](const auto& entry) {
    if (entry.second.last_seen + kForgetLabelsAfter >= drains_) return false;
    label_bytes_ -= entry.second.bytes;
    return true;
  });
}

}  // namespace profd
