// SPDX-License-Identifier: Apache-2.0
#include "daemon/dump/thread_groups.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "daemon/output/frame_text.h"
#include "daemon/output/stack_state.h"

namespace profd {
namespace {

constexpr std::string_view kStackIndent = "    ";

void AppendFrame(const Profile& profile, const Frame& frame, std::string& out) {
  // It is in the group's first line.
  if (frame.kind->is_wait_reason) return;
  out += kStackIndent;
  AppendFrameName(profile, frame, out);
  AppendFrameModule(profile, frame, out);
  if (frame.kind->is_inlined) out += " (inlined)";
  out += '\n';
}

// In which order groups are shown.
int RankOf(const ListedThread& listed) {
  if (listed.activity == ThreadActivity::kRunning) return 0;
  if (listed.activity == ThreadActivity::kRunnable) return 1;
  if (listed.holder) return 2;
  if (!listed.thread.has_user_code) return 5;
  const WaitReason& reason = listed.thread.reason;
  const bool is_stuck =
      !IsHalted(reason) && (reason.io || IsUninterruptible(reason));
  return is_stuck ? 3 : 4;
}

}  // namespace

std::string_view StackTexts::Of(const ListedThread& thread) {
  const auto [at, is_new] = texts_.try_emplace(
      {thread.has_sample, thread.activity, thread.user, thread.kernel,
       thread.user_state, thread.kernel_state});
  if (is_new) at->second = Make(thread);
  return at->second;
}

std::string StackTexts::Make(const ListedThread& thread) const {
  std::string text;
  if (!thread.has_sample) {
    text += kStackIndent;
    text += thread.activity == ThreadActivity::kRunning
                ? "[running: not caught]\n"
                : "[lost]\n";
    return text;
  }
  const auto add = [&](StackState state, CallStackId stack, StackOf of) {
    if (!IsMissed(state)) {
      for (const FrameId id : profile_.Stack(stack)) {
        AppendFrame(profile_, profile_.frames[id], text);
      }
    }
    if (const auto mark = MarkOf(state, of)) {
      text += kStackIndent;
      text += kStackMarks[*mark];
      text += '\n';
    }
  };
  add(thread.kernel_state, thread.kernel, StackOf::kKernel);
  add(thread.user_state, thread.user, StackOf::kUser);
  return text;
}

std::vector<ThreadGroup> GroupThreads(const ThreadList& list,
                                      StackTexts& stacks) {
  std::vector<bool> is_shown(list.threads.size());
  for (const std::vector<size_t>& cycle : list.deadlocks) {
    for (const size_t i : cycle) is_shown[i] = true;
  }
  // A lock's address means something in one process.
  using Key = std::tuple<ThreadActivity, std::string_view, uint32_t, uint64_t,
                         std::optional<size_t>, std::string_view>;
  std::map<Key, ThreadGroup> by_key;
  for (size_t i = 0; i < list.threads.size(); ++i) {
    if (is_shown[i]) continue;
    const ListedThread& listed = list.threads[i];
    by_key[{listed.activity, listed.reason,
            listed.lock_address ? listed.thread.pid : 0,
            listed.lock_address.value_or(0), listed.holder, stacks.Of(listed)}]
        .push_back(i);
  }
  std::vector<ThreadGroup> groups;
  groups.reserve(by_key.size());
  for (auto& [key, group] : by_key) groups.push_back(std::move(group));
  std::ranges::sort(groups, {}, [&](const ThreadGroup& group) {
    return std::tuple(RankOf(list.threads[group.front()]),
                      -static_cast<ptrdiff_t>(group.size()), group.front());
  });
  return groups;
}

}  // namespace profd
