// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>

#include "daemon/labels/label_thread.h"
#include "daemon/output/cgroup_path.h"
#include "daemon/profile/raw_profile.h"
#include "ksym/base/keyed_hash.h"

namespace profd {

// What is known of sampled processes beside their cgroups: names of pods and
// containers, and what their environments say. It is found in another thread:
// the first samples of a container may have none. Not thread-safe.
// Memory: 200 bytes and its labels per container and, if environments are
// wanted, per process sampled within a minute.
// Cost: 0.3 us per process and drain, and more in the other thread.
class ProcessLabels {
 public:
  // Processes whose environments are known; those of others are not read. Their
  // labels have LabelThread::kMaxLabelBytes in all.
  static constexpr size_t kMaxProcesses = 16384;

  // Paths of cgroups that are remembered, and their bytes; others are parsed
  // each time.
  static constexpr size_t kMaxPaths = 16384;
  static constexpr size_t kMaxPathBytes = 512;

  explicit ProcessLabels(LabelThread::Settings settings);

  // A process was sampled in the cgroup with that path; empty: not known.
  void NoteSample(const ksym::ProcessId& process, std::string_view cgroup);
  // Fills in what is known of the profile's processes, whose cgroups are there.
  void Label(RawProfile& profile);
  // Changes what is asked for from now on: nothing, where there are neither
  // directories nor variables.
  void Configure(const LabelThread::Settings& settings);
  LabelStatistics statistics() const { return thread_.statistics(); }

 private:
  using Labels = std::shared_ptr<const LabelSet>;  // null: none are known
  struct Container {
    Labels labels = {};
    uint64_t last_seen = 0;  // in which drain
  };
  // A cgroup's path, and the container that it names.
  struct Path {
    Container* container = nullptr;  // null: it names none
    uint64_t last_seen = 0;          // not later than the container
  };
  struct Process {
    Labels labels = {};      // of its environment
    size_t bytes = 0;        // of these
    uint64_t last_seen = 0;  // in which drain
    // The sum of these two is made once.
    Labels of_container = {};
    Labels all = {};
  };

  Container* FindContainer(std::string_view cgroup);
  Container* AskForContainer(const CgroupOwner& owner);
  Process* FindProcess(const ksym::ProcessId& process);
  Labels LabelsOf(const ksym::ProcessId& process, std::string_view cgroup);
  void TakeAnswers();
  void Keep(Process& process, LabelSet labels);
  void Forget();

  LabelThread::Settings settings_;
  std::map<ContainerKey, Container> containers_;
  // Each path is parsed once. What runs in a container can make cgroups there:
  // so there are bounds.
  std::unordered_map<std::string, Path, ksym::TextHash, std::equal_to<>> paths_;
  std::map<ksym::ProcessId, Process> processes_;
  size_t label_bytes_ = 0;  // of all their environments
  uint64_t drains_ = 0;
  LabelThread thread_;
};

}  // namespace profd
