// SPDX-License-Identifier: Apache-2.0
#include "daemon/dump/dump_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "daemon/dump/thread_groups.h"
#include "daemon/output/frame_text.h"

namespace profd {
namespace {

// The lines of a group and the tids in one; the rest is counted.
constexpr size_t kShownProcesses = 8;
constexpr size_t kShownTids = 16;

std::string Plural(size_t count, std::string_view one, std::string_view many) {
  return fmt::format("{} {}", count, count == 1 ? one : many);
}

// Not to be taken for a frame, whose line has a longer indent.
std::string LineName(std::string_view comm) {
  std::string out;
  AppendLineName(comm, out);
  return out;
}

std::string ThreadName(const DumpedThread& thread) {
  return fmt::format("{} '{}'", thread.tid, LineName(thread.comm));
}

class DumpWriter {
 public:
  DumpWriter(const ThreadList& list, const Profile& profile, OutputBuffer& out)
      : list_(list), stacks_(profile), out_(out) {}

  void Run() {
    for (const std::string& line : SummaryLines(list_)) Print("{}\n", line);
    for (const std::vector<size_t>& cycle : list_.deadlocks) AddDeadlock(cycle);
    for (const ThreadGroup& group : GroupThreads(list_, stacks_)) {
      AddGroup(group);
    }
  }

 private:
  template <typename... Arguments>
  void Print(fmt::format_string<Arguments...> format,
             Arguments&&... arguments) {
    fmt::format_to(std::back_inserter(out_.text()), format,
                   std::forward<Arguments>(arguments)...);
  }

  void AddDeadlock(const std::vector<size_t>& cycle) {
    if (cycle.size() == 1) {
      Print("\nDEADLOCK: 1 thread waits for a lock that it holds\n");
    } else {
      Print("\nDEADLOCK: {} threads, each of which waits for the next one\n",
            cycle.size());
    }
    for (const size_t i : cycle) {
      const ListedThread& listed = list_.threads[i];
      Print("\n{} ({}), blocked: {}{}\n", ThreadName(listed.thread),
            listed.thread.pid, listed.reason, WaitedText({i}));
      AddLock(listed);
      out_.text() += stacks_.Of(listed);
      out_.PassOn();
    }
  }

  void AddGroup(const ThreadGroup& group) {
    const ListedThread& first = list_.threads[group.front()];
    Print("\n{}, {}{}{}{}\n", Plural(group.size(), "thread", "threads"),
          Name(first.activity), first.reason.empty() ? "" : ": ", first.reason,
          WaitedText(group));
    AddThreads(group);
    AddLock(first);
    out_.text() += stacks_.Of(first);
    out_.PassOn();
  }

  // ", for 1 s to 2 s".
  std::string WaitedText(const ThreadGroup& group) const {
    uint64_t least = UINT64_MAX;
    uint64_t most = 0;
    for (const size_t i : group) {
      const auto& waited = list_.threads[i].thread.waited_ns;
      if (!waited) continue;
      least = std::min(least, *waited);
      most = std::max(most, *waited);
    }
    if (least > most) return {};
    const std::string from = TimeText(least);
    const std::string to = TimeText(most);
    return from == to ? ", for " + from
                      : fmt::format(", for {} to {}", from, to);
  }

  // A line for each process: "  nginx (12): 12 13 14".
  void AddThreads(const ThreadGroup& group) {
    std::map<std::pair<uint32_t, std::string_view>, std::vector<uint32_t>>
        owners;
    for (const size_t i : group) {
      const DumpedThread& thread = list_.threads[i].thread;
      owners[{thread.pid, thread.comm}].push_back(thread.tid);
    }
    size_t shown = 0;
    for (const auto& [owner, tids] : owners) {
      if (shown++ == kShownProcesses) {
        Print("  and {} more\n", owners.size() - kShownProcesses);
        break;
      }
      const auto& [pid, comm] = owner;
      Print("  {} ({})", LineName(comm), pid);
      if (tids.size() > 1 || tids.front() != pid) {
        out_.text() += ':';
        for (const uint32_t tid :
             std::span(tids).first(std::min(tids.size(), kShownTids))) {
          Print(" {}", tid);
        }
        if (tids.size() > kShownTids) {
          Print(" and {} more", tids.size() - kShownTids);
        }
      }
      out_.text() += '\n';
    }
  }

  void AddLock(const ListedThread& listed) {
    if (!listed.lock_address) return;
    if (!listed.holder) {
      Print("  at {:#x}\n", *listed.lock_address);
      return;
    }
    const ListedThread& holder = list_.threads[*listed.holder];
    Print("  for the mutex at {:#x}, which {} has", *listed.lock_address,
          ThreadName(holder.thread));
    if (holder.thread.pid != listed.thread.pid) {
      Print(" of process {}", holder.thread.pid);
    }
    Print(" ({})\n", Name(holder.activity));
  }

  const ThreadList& list_;
  StackTexts stacks_;
  OutputBuffer& out_;
};

}  // namespace

std::string TimeText(uint64_t nanoseconds) {
  constexpr uint64_t kMs = 1'000'000;
  constexpr uint64_t kSecond = 1000 * kMs;
  constexpr uint64_t kMinute = 60 * kSecond;
  constexpr uint64_t kHour = 60 * kMinute;
  constexpr uint64_t kDay = 24 * kHour;
  const auto two = [&](uint64_t unit, std::string_view name, uint64_t part,
                       std::string_view part_name) {
    return fmt::format("{} {} {} {}", nanoseconds / unit, name,
                       nanoseconds % unit / part, part_name);
  };
  if (nanoseconds < kMs) return "less than 1 ms";
  if (nanoseconds < kSecond) return fmt::format("{} ms", nanoseconds / kMs);
  if (nanoseconds < kMinute) {
    return fmt::format("{}.{} s", nanoseconds / kSecond,
                       nanoseconds % kSecond / (kSecond / 10));
  }
  if (nanoseconds < kHour) return two(kMinute, "min", kSecond, "s");
  if (nanoseconds < kDay) return two(kHour, "h", kMinute, "min");
  return two(kDay, "d", kHour, "h");
}

std::vector<std::string> SummaryLines(const ThreadList& list) {
  std::map<ThreadActivity, size_t> counts;
  for (const ListedThread& listed : list.threads) ++counts[listed.activity];
  std::vector<std::string> lines = {fmt::format(
      "{} of {}: {} running, {} runnable, {} blocked",
      Plural(list.threads.size(), "thread", "threads"),
      Plural(list.processes, "process", "processes"),
      counts[ThreadActivity::kRunning], counts[ThreadActivity::kRunnable],
      counts[ThreadActivity::kBlocked])};
  if (list.running_without_stack > 0) {
    lines.push_back(
        fmt::format("{} that ran {} not caught: without a stack",
                    Plural(list.running_without_stack, "thread", "threads"),
                    list.running_without_stack == 1 ? "was" : "were"));
  }
  if (list.lost > 0) {
    lines.push_back(fmt::format("the stacks of {} were lost",
                                Plural(list.lost, "thread", "threads")));
  }
  if (!list.deadlocks.empty()) {
    lines.push_back(Plural(list.deadlocks.size(), "deadlock", "deadlocks"));
  }
  return lines;
}

void WriteDumpText(const ThreadList& list, const Profile& profile,
                   OutputBuffer& out) {
  DumpWriter(list, profile, out).Run();
}

}  // namespace profd
