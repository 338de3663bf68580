// SPDX-License-Identifier: Apache-2.0
#include "daemon/dump/thread_list.h"

#include <algorithm>
#include <array>
#include <span>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "daemon/profile/wait_text.h"

namespace profd {
namespace {

struct Samples {
  std::unordered_map<uint32_t, const ProfileSample*> of_threads;  // by tid
  std::unordered_map<uint32_t, const ProfileSample*> of_cpu;
};

// Whether the sample shows better what its thread does: a stack that was not
// cut, and then what it did most.
bool IsBetter(const ProfileSample& sample, const ProfileSample& other) {
  const auto rank = [](const ProfileSample& of) {
    return std::pair(of.user_state == StackState::kWhole, of.count);
  };
  return rank(sample) > rank(other);
}

Samples SamplesByThread(const Profile& profile) {
  Samples samples;
  const std::vector<SampleKind>& kinds = profile.metadata.kinds;
  for (const ProfileSample& sample : profile.samples) {
    if (kinds[sample.kind] == ThreadKind()) {
      samples.of_threads.emplace(sample.tid, &sample);
      continue;
    }
    const ProfileSample*& best = samples.of_cpu[sample.tid];
    if (best == nullptr || IsBetter(sample, *best)) best = &sample;
  }
  return samples;
}

// All but the thread itself and what it waits for.
ListedThread List(const DumpedThread& thread, const Samples& samples) {
  ListedThread listed;
  const auto& of_its_kind =
      thread.is_running ? samples.of_cpu : samples.of_threads;
  if (thread.is_running) {
    listed.activity = ThreadActivity::kRunning;
  } else {
    listed.reason = ReasonText(thread.reason);
    if (thread.reason.runnable) listed.activity = ThreadActivity::kRunnable;
  }
  const auto found = of_its_kind.find(thread.tid);
  // A tid may have gone from one process to another between the two.
  if (found != of_its_kind.end() && found->second->pid == thread.pid) {
    const ProfileSample& sample = *found->second;
    listed.has_sample = true;
    listed.user_state = sample.user_state;
    listed.kernel_state = sample.kernel_state;
    listed.user = sample.user;
    listed.kernel = sample.kernel;
  }
  return listed;
}

bool WaitsForMutex(const ListedThread& listed, const Profile& profile) {
  std::array<std::string_view, kLockingFrames> functions;
  const auto stack = profile.Stack(listed.user);
  const size_t count = std::min(stack.size(), functions.size());
  for (size_t i = 0; i < count; ++i) {
    functions[i] = profile.String(profile.frames[stack[i]].name);
  }
  return IsInMutexLock(std::span(functions).first(count));
}

// Adds the lock that each thread waits for, and its holder.
void AddLocks(std::span<const DumpedThread> threads, const Profile& profile,
              const SharesMemory& shares_memory, ThreadList& list) {
  std::vector<ClaimedLock> claims;
  for (size_t i = 0; i < threads.size(); ++i) {
    ListedThread& listed = list.threads[i];
    const auto wait = FutexWaitOf(threads[i]);
    if (!wait) continue;
    listed.lock_address = wait->address;
    const auto claim = LockClaimOf(threads[i], *wait);
    // The lock's words and the stack must both say so: either alone may be
    // chance.
    if (!claim || !WaitsForMutex(listed, profile)) continue;
    claims.push_back({.waiter = i, .address = wait->address, .claim = *claim});
  }
  const auto holders = FindHolders(threads, claims, shares_memory);
  for (size_t i = 0; i < holders.size(); ++i) {
    list.threads[i].holder = holders[i];
  }
  list.deadlocks = FindCycles(holders);
}

}  // namespace

std::string_view Name(ThreadActivity activity) {
  switch (activity) {
    case ThreadActivity::kRunning:
      return "running";
    case ThreadActivity::kRunnable:
      return "runnable";
    case ThreadActivity::kBlocked:
      break;
  }
  return "blocked";
}

ThreadList MakeThreadList(std::vector<DumpedThread> threads,
                          const Profile& profile,
                          const SharesMemory& shares_memory) {
  std::ranges::sort(threads, {}, [](const DumpedThread& thread) {
    return std::tuple(thread.pid, thread.tid);
  });
  const Samples samples = SamplesByThread(profile);
  ThreadList list;
  list.threads.reserve(threads.size());
  for (size_t i = 0; i < threads.size(); ++i) {
    const DumpedThread& thread = threads[i];
    if (i == 0 || threads[i - 1].pid != thread.pid) ++list.processes;
    list.threads.push_back(List(thread, samples));
    if (list.threads.back().has_sample) continue;
    ++(thread.is_running ? list.running_without_stack : list.lost);
  }
  AddLocks(threads, profile, shares_memory, list);
  for (size_t i = 0; i < threads.size(); ++i) {
    list.threads[i].thread = std::move(threads[i]);
  }
  return list;
}

Profile MakeThreadProfile(const ThreadList& list, const Profile& profile) {
  Profile made;
  made.metadata = profile.metadata;
  made.metadata.kinds = {ThreadKind(), WaitedKind()};
  made.strings = profile.strings;
  made.frames = profile.frames;
  made.stacks = profile.stacks;
  StringTable& strings = made.strings;
  for (const ListedThread& listed : list.threads) {
    const DumpedThread& thread = listed.thread;
    ProfileSample sample = {.comm = strings.Intern(thread.comm),
                            .pid = thread.pid,
                            .tid = thread.tid,
                            .user_state = listed.user_state,
                            .kernel_state = listed.kernel_state,
                            .kind = 0,
                            .user = listed.user,
                            .kernel = listed.kernel,
                            .count = 1};
    made.samples.push_back(sample);
    if (!thread.waited_ns) continue;
    sample.kind = 1;
    sample.value = *thread.waited_ns;
    made.samples.push_back(sample);
  }
  made.accounting.taken = made.samples.size();
  made.accounting.emitted = made.samples.size();
  return made;
}

}  // namespace profd
