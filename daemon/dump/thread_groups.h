// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "daemon/dump/thread_list.h"
#include "daemon/profile/profile.h"

namespace profd {

// The lines of stacks, each stack's made once: "    name [module]", leaf first,
// with a mark where the root or all of it is missing. Not thread-safe.
class StackTexts {
 public:
  explicit StackTexts(const Profile& profile) : profile_(profile) {}

  // The kernel's stack, then the thread's own. Valid while this lives.
  std::string_view Of(const ListedThread& thread);

 private:
  std::string Make(const ListedThread& thread) const;

  const Profile& profile_;
  // All that the lines depend on.
  using Key = std::tuple<bool, ThreadActivity, CallStackId, CallStackId,
                         StackState, StackState>;
  std::map<Key, std::string> texts_;
};

// Indices of threads of which nothing but ids, names and times differs, in
// their order.
using ThreadGroup = std::vector<size_t>;

// All threads but those in deadlocks. In the order in which they are shown.
std::vector<ThreadGroup> GroupThreads(const ThreadList& list,
                                      StackTexts& stacks);

}  // namespace profd
