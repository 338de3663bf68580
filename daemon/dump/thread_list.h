// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/dump/lock_holders.h"
#include "daemon/profile/dumped_thread.h"
#include "daemon/profile/profile.h"

namespace profd {

enum class ThreadActivity : uint8_t { kRunning, kRunnable, kBlocked };

// "running", "runnable", "blocked".
std::string_view Name(ThreadActivity activity);

// A thread with its named stacks and what it waits for.
struct ListedThread {
  DumpedThread thread;
  ThreadActivity activity = ThreadActivity::kBlocked;
  std::string reason;       // "futex", "fsync, iowait"; empty: it runs
  bool has_sample = false;  // else its stacks are not known at all
  StackState user_state = StackState::kNone;
  StackState kernel_state = StackState::kNone;
  CallStackId user = 0;
  CallStackId kernel = 0;  // the reason's frame is at its root
  // The word that it waits for in futex(2).
  std::optional<uint64_t> lock_address;
  std::optional<size_t> holder;  // index of the thread that has the lock
};

// All threads, by process and tid, and what is to be said of them.
struct ThreadList {
  std::vector<ListedThread> threads;
  // Indices of threads each of which waits for the next one.
  std::vector<std::vector<size_t>> deadlocks;
  size_t processes = 0;
  size_t running_without_stack = 0;
  size_t lost = 0;  // the stacks of others
};

// Puts threads and their samples together: of the kind of ThreadKind() one per
// thread, and of one that runs the one of the CPU's that was counted most, of
// whole stacks if there are any.
// `profile` has both kinds, by tid.
ThreadList MakeThreadList(std::vector<DumpedThread> threads,
                          const Profile& profile,
                          const SharesMemory& shares_memory);

// The profile of the list's threads alone: of each one sample of the kind
// "threads", and one of the kind "waited" with its nanoseconds, where these are
// known. `profile` is the one that the list was made of.
Profile MakeThreadProfile(const ThreadList& list, const Profile& profile);

}  // namespace profd
