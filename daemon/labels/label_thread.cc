// SPDX-License-Identifier: Apache-2.0
#include "daemon/labels/label_thread.h"

#include <algorithm>
#include <iterator>

#include "daemon/base/signals_blocked.h"

namespace profd {
namespace {

using std::chrono::seconds;

// Environments that are read between two looks at what else is asked for.
constexpr size_t kEnvironmentsAtOnce = 64;
constexpr seconds kLongestWait(10);
constexpr seconds kRefreshPeriod(60);
constexpr std::chrono::hours kNever(24 * 365);

// How long until a container is looked for again.
std::chrono::steady_clock::duration WaitAfter(const ContainerKey& key,
                                              NameResult result,
                                              unsigned tries) {
  switch (result) {
    case NameResult::kFound:
      // A pod and its containers keep their names.
      if (!key.pod_uid.empty()) return kNever;
      return kRefreshPeriod;
    case NameResult::kNotInTime:
      return kRefreshPeriod;
    case NameResult::kPodOnly:
    case NameResult::kNotFound:
      return std::min(seconds(uint64_t{1} << std::min(tries, 4u)),
                      kLongestWait);
    default:
      return kLongestWait;
  }
}

}  // namespace

LabelThread::LabelThread(Settings settings)
    : settings_(std::move(settings)),
      next_due_(Clock::now()),
      next_look_(next_due_),
      disk_({.patience = kDiskPatience, .max_left_behind = kMaxHangingThreads}),
      memory_(
          {.patience = kMemoryPatience, .max_left_behind = kMaxHangingThreads}),
      files_(std::make_shared<ContainerFiles>(settings_.directories)) {
  const SignalsBlocked blocked;
  thread_ = std::thread([this] { Run(); });
}

LabelThread::~LabelThread() {
  {
    const std::scoped_lock lock(mutex_);
    ends_ = true;
    changed_.notify_all();
  }
  thread_.join();
}

void LabelThread::Ask(const ContainerKey& container) {
  const std::scoped_lock lock(mutex_);
  if (asked_containers_ == kMaxContainers) {
    ++statistics_.containers_without_room;
    return;
  }
  ++asked_containers_;
  tasks_.containers.push_back({.key = container, .is_wanted = true});
  if (tasks_.containers.size() == 1) changed_.notify_all();
}

void LabelThread::Ask(const ksym::ProcessId& process) {
  const std::scoped_lock lock(mutex_);
  if (processes_.size() == kMaxProcessesWaiting) {
    ++statistics_.environments[static_cast<size_t>(EnvironmentResult::kNoRoom)];
    return;
  }
  processes_.push_back(process);
  if (processes_.size() == 1) changed_.notify_all();
}

void LabelThread::CountProcessWithoutRoom() {
  const std::scoped_lock lock(mutex_);
  ++statistics_.environments[static_cast<size_t>(EnvironmentResult::kNoRoom)];
}

void LabelThread::Forget(const ContainerKey& container) {
  const std::scoped_lock lock(mutex_);
  --asked_containers_;
  tasks_.containers.push_back({.key = container, .is_wanted = false});
  if (tasks_.containers.size() == 1) changed_.notify_all();
}

LabelThread::Answers LabelThread::Take() {
  const std::scoped_lock lock(mutex_);
  environment_bytes_ = 0;
  return std::exchange(answers_, {});
}

void LabelThread::Configure(Settings settings) {
  const std::scoped_lock lock(mutex_);
  tasks_.settings = std::move(settings);
  // What the thread finds until it has the new settings is of the old ones, and
  // carries their number.
  ++configuration_;
  answers_ = {};
  environment_bytes_ = 0;
  processes_.clear();
  changed_.notify_all();
}

LabelStatistics LabelThread::statistics() const {
  const std::scoped_lock lock(mutex_);
  return statistics_;
}

void LabelThread::Run() {
  while (const auto tasks = Next()) {
    Accept(*tasks);
    ReadEnvironments(tasks->processes);
    const auto now = Clock::now();
    if (now < std::max(next_due_, next_look_)) continue;
    Publish(LookForContainers(now));
  }
}

std::optional<LabelThread::Tasks> LabelThread::Next() {
  std::unique_lock lock(mutex_);
  while (!ends_ && Clock::now() < NextTime()) {
    changed_.wait_until(lock, NextTime());
  }
  if (ends_) return std::nullopt;
  Tasks tasks = std::exchange(tasks_, {});
  tasks.configuration = configuration_;
  while (!processes_.empty() && tasks.processes.size() < kEnvironmentsAtOnce) {
    tasks.processes.push_back(processes_.front());
    processes_.pop_front();
  }
  return tasks;
}

LabelThread::Clock::time_point LabelThread::NextTime() const {
  if (tasks_.settings || !processes_.empty()) return Clock::time_point::min();
  // What comes in between is looked for together.
  if (!tasks_.containers.empty()) return next_look_;
  return std::max(next_due_, next_look_);
}

void LabelThread::Accept(const Tasks& tasks) {
  const auto now = Clock::now();
  if (tasks.settings || !tasks.containers.empty()) next_due_ = now;
  if (tasks.settings) {
    settings_ = *tasks.settings;
    configured_ = tasks.configuration;
    files_ = std::make_shared<ContainerFiles>(settings_.directories);
    for (auto& [key, tracked] : tracked_) tracked = {.due = now};
  }
  for (const auto& [key, is_wanted] : tasks.containers) {
    if (is_wanted) {
      tracked_[key] = {.due = now};
    } else {
      tracked_.erase(key);
      files_->Forget(key);
    }
  }
}

void LabelThread::ReadEnvironments(std::span<const ksym::ProcessId> processes) {
  for (const ksym::ProcessId& process : processes) {
    // Each has its own, as the thread that reads may be left behind with it.
    auto found = std::make_shared<ProcessEnvironment>();
    const bool is_done =
        memory_.Run([found, process, choice = settings_.environment] {
          *found = ReadEnvironment(process, choice);
        });
    ProcessEnvironment environment;
    if (is_done) {
      environment = std::move(*found);
    } else {
      environment.result = EnvironmentResult::kNotInTime;
    }
    const std::scoped_lock lock(mutex_);
    // The others are of the old settings as well.
    if (ends_ || configuration_ != configured_) return;
    Answer(process, std::move(environment));
  }
}

void LabelThread::Answer(const ksym::ProcessId& process,
                         ProcessEnvironment environment) {
  const size_t bytes = BytesOf(environment.labels);
  const bool has_room = bytes <= kMaxLabelBytes - environment_bytes_;
  if (!has_room) environment.result = EnvironmentResult::kNoRoom;
  ++statistics_.environments[static_cast<size_t>(environment.result)];
  statistics_.attributes_refused += environment.refused;
  if (environment.labels.empty() || !has_room) return;
  environment_bytes_ += bytes;
  answers_.environments.emplace_back(process, std::move(environment.labels));
}

LabelThread::ContainerAnswers LabelThread::LookForContainers(
    Clock::time_point now) {
  ContainerAnswers changed;
  std::vector<ContainerKey> due;
  for (const auto& [key, tracked] : tracked_) {
    if (tracked.due <= now) due.push_back(key);
  }
  if (!due.empty()) {
    next_look_ = now + kLookPeriod;
    std::vector<ContainerNames> names = Find(due, now);
    for (size_t i = 0; i < due.size(); ++i) {
      if (Settle(due[i], std::move(names[i]), now)) {
        changed.emplace_back(due[i], tracked_.at(due[i]).labels);
      }
    }
  }
  next_due_ = now + kRefreshPeriod;
  for (const auto& [key, tracked] : tracked_) {
    next_due_ = std::min(next_due_, tracked.due);
  }
  return changed;
}

std::vector<ContainerNames> LabelThread::Find(
    const std::vector<ContainerKey>& due, Clock::time_point now) {
  auto found = std::make_shared<std::vector<ContainerNames>>();
  if (disk_.Run([files = files_, found, due, now] {
        *found = files->Find(due, now);
      })) {
    return std::move(*found);
  }
  // The thread that hangs keeps them.
  files_ = std::make_shared<ContainerFiles>(settings_.directories);
  return std::vector<ContainerNames>(due.size(),
                                     {.result = NameResult::kNotInTime});
}

bool LabelThread::Settle(const ContainerKey& key, ContainerNames names,
                         Clock::time_point now) {
  Tracked& tracked = tracked_.at(key);
  tracked.result = names.result;
  tracked.due = now + WaitAfter(key, names.result, tracked.tries);
  ++tracked.tries;
  // What was true of it stays so while nobody says otherwise.
  if (names.result == NameResult::kNotInTime ||
      names.labels == tracked.labels) {
    return false;
  }
  tracked.labels = std::move(names.labels);
  return true;
}

void LabelThread::Publish(ContainerAnswers changed) {
  std::array<uint64_t, kNameResults> containers = {};
  for (const auto& [key, tracked] : tracked_) {
    ++containers[static_cast<size_t>(tracked.result)];
  }
  // Together: whoever has the names of a container finds it counted.
  const std::scoped_lock lock(mutex_);
  statistics_.containers = containers;
  if (configuration_ != configured_) return;
  std::ranges::move(changed, std::back_inserter(answers_.containers));
}

}  // namespace profd
