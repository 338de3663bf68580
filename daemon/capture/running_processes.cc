// SPDX-License-Identifier: Apache-2.0
#include "daemon/capture/running_processes.h"

#include <algorithm>
#include <chrono>
#include <cstddef>

#include "daemon/base/steady_clock.h"

namespace profd {
namespace {

// Processes whose tables are made before they are sampled.
constexpr size_t kMaxBusy = 32;
// How long interpreters are looked for before the first sample, at the most,
// half of it in reading what processes map.
constexpr std::chrono::milliseconds kPreparation(20);

}  // namespace

RunningProcesses::RunningProcesses(const BpfConfig& config, ProcessWatch& watch)
    : watch_(watch),
      reads_(config.user_stacks),
      pids_(config.pids),
      follows_children_(config.follow_children) {}

void RunningProcesses::FindRuntimes(UnwindTables& tables) {
  const auto begin = SteadyClock::now();
  watch_.ReadSome(pids_, begin + kPreparation / 2);
  for (const ProcessWatch::Busy& process : watch_.AllByUse()) {
    if (SteadyClock::now() >= begin + kPreparation) return;
    // Children may well become programs that others are.
    if (!follows_children_ && !IsSampled(process.pid)) continue;
    tables.FindRuntimes(process.pid, *process.mappings, begin + kPreparation);
  }
}

void RunningProcesses::ReadAll() {
  if (reads_) watch_.ReadAll();
}

void RunningProcesses::ExpectBusy(UnwindTables& tables,
                                  const std::function<void()>& make_room) {
  for (const ProcessWatch::Busy& busy : watch_.Busiest(kMaxBusy)) {
    if (IsSampled(busy.pid)) tables.Expect(busy.pid, *busy.mappings);
    make_room();
  }
}

bool RunningProcesses::IsSampled(uint32_t pid) const {
  return pids_.empty() || std::ranges::binary_search(pids_, pid);
}

}  // namespace profd
