// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <thread>
#include <utility>
#include <vector>

#include "daemon/base/patient_thread.h"
#include "daemon/labels/container_files.h"
#include "daemon/labels/container_key.h"
#include "daemon/labels/environment_reader.h"
#include "ksym/process/process_image.h"

namespace profd {

struct LabelStatistics {
  // Containers that are asked for now, by NameResult.
  std::array<uint64_t, kNameResults> containers = {};
  uint64_t containers_without_room = 0;  // that were not looked for
  // All processes that were asked for, by EnvironmentResult.
  std::array<uint64_t, kEnvironmentResults> environments = {};
  uint64_t attributes_refused = 0;  // of these environments
};

// Finds labels in a thread of its own, so that neither a disk nor the memory of
// a process keeps the thread that samples from its work: that one asks, goes
// on, and takes the answers when it drains. What hangs is left behind.
//
// A container is looked for at once, and again until its names are found: after
// 1, 2, 4, 8 and then each 10 seconds; Docker's and Podman's are looked at each
// minute from then on, as they can get other names. New ones are looked for
// together, every two seconds at the most: a look
// reads whole directories. A process's environment is read once.
//
// One thread asks and takes.
class LabelThread {
 public:
  struct Settings {
    ContainerFiles::Directories directories;
    EnvironmentChoice environment;

    friend bool operator==(const Settings&, const Settings&) = default;
  };
  // Those whose labels changed, in the order in which this was seen.
  using ContainerAnswers = std::vector<std::pair<ContainerKey, LabelSet>>;
  struct Answers {
    ContainerAnswers containers;
    std::vector<std::pair<ksym::ProcessId, LabelSet>> environments;
  };

  // Containers that are asked for at once; others have no names.
  static constexpr size_t kMaxContainers = 4096;
  // Processes whose environment is still to be read.
  static constexpr size_t kMaxProcessesWaiting = 4096;
  // The labels of environments that were not taken yet, and of those that one
  // who takes them keeps.
  static constexpr size_t kMaxLabelBytes = size_t{16} << 20;
  // For the directories; for one environment.
  static constexpr std::chrono::seconds kDiskPatience{2};
  static constexpr std::chrono::milliseconds kMemoryPatience{250};
  // Threads that hang, of each of these two; while there are so many nothing
  // more of that kind is read.
  static constexpr int kMaxHangingThreads = 4;
  static constexpr std::chrono::seconds kLookPeriod{2};

  explicit LabelThread(Settings settings);
  // Takes kDiskPatience at the most.
  ~LabelThread();

  // These wait for nothing but a lock that nobody holds for long. The thread
  // wakes for the first that it has not taken, not for each.
  void Ask(const ContainerKey& container);
  void Ask(const ksym::ProcessId& process);
  void Forget(const ContainerKey& container);
  // Counts a process for which, or for whose labels, the caller has no room.
  void CountProcessWithoutRoom();
  Answers Take();
  // Containers that are asked for are looked at again, and answered again.
  // Nothing that was found with other settings is answered any more. Processes
  // that were asked for are forgotten.
  void Configure(Settings settings);
  LabelStatistics statistics() const;

 private:
  using Clock = std::chrono::steady_clock;
  struct Tracked {
    Clock::time_point due;
    unsigned tries = 0;
    NameResult result = NameResult::kNotFound;
    LabelSet labels = {};  // as answered last, with these settings
  };
  // That a container is asked for, or is not any more.
  struct ContainerTask {
    ContainerKey key;
    bool is_wanted = false;
  };
  struct Tasks {
    std::optional<Settings> settings;
    uint64_t configuration = 0;  // its number, since which the others came
    std::vector<ContainerTask> containers;  // in the order of the calls
    std::vector<ksym::ProcessId> processes;
  };

  void Run();
  // Empty: the time has come, or a container is due; none: it ends.
  std::optional<Tasks> Next();
  // Until when it may wait: a container that is new can wait for the next look.
  Clock::time_point NextTime() const;
  void Accept(const Tasks& tasks);
  void ReadEnvironments(std::span<const ksym::ProcessId> processes);
  // Under the lock.
  void Answer(const ksym::ProcessId& process, ProcessEnvironment environment);
  // Those that are due; what is answered of them.
  ContainerAnswers LookForContainers(Clock::time_point now);
  std::vector<ContainerNames> Find(const std::vector<ContainerKey>& due,
                                   Clock::time_point now);
  // Whether its labels changed.
  bool Settle(const ContainerKey& key, ContainerNames names,
              Clock::time_point now);
  void Publish(ContainerAnswers changed);

  mutable std::mutex mutex_;  // of what follows
  std::condition_variable changed_;
  bool ends_ = false;
  size_t asked_containers_ = 0;  // less those that were forgotten
  Tasks tasks_;
  std::deque<ksym::ProcessId> processes_;
  uint64_t configuration_ = 0;    // how often it was configured
  Answers answers_;               // all with these settings
  size_t environment_bytes_ = 0;  // of the labels in it
  LabelStatistics statistics_;

  // Used by the thread only.
  Settings settings_;
  uint64_t configured_ = 0;  // the number of these settings
  std::map<ContainerKey, Tracked> tracked_;
  Clock::time_point next_due_;   // not later than of any of these
  Clock::time_point next_look_;  // not before
  PatientThread disk_;
  PatientThread memory_;
  std::shared_ptr<ContainerFiles> files_;  // another one after one hung

  std::thread thread_;  // last: it uses all of the above
};

}  // namespace profd
