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
// How long the first sample waits for what is made ready, at the most, half of
// it for reading what processes map.
constexpr std::chrono::milliseconds kPreparation(20);
// The same where processes were chosen, by -p or as a command that has not
// begun. It takes 10 ms, and so long where CPUs are short.
constexpr std::chrono::milliseconds kPreparationOfChosen(200);

}  // namespace

RunningProcesses::RunningProcesses(const BpfConfig& config, ProcessWatch& watch)
    : watch_(watch),
      reads_(config.user_stacks),
      pids_(config.pids),
      follows_children_(config.follow_children) {}

void RunningProcesses::Prepare(UnwindTables& tables) {
  const auto begin = SteadyClock::now();
  const auto time = pids_.empty() ? kPreparation : kPreparationOfChosen;
  const auto until = begin + time;
  watch_.ReadSome(pids_, begin + time / 2);
  const std::vector<ProcessWatch::Busy> processes = watch_.AllByUse();
  // First, as the tables are made in another thread meanwhile. Those that only
  // sleep are sampled as soon as they wake.
  for (const ProcessWatch::Busy& process : processes) {
    if (pids_.empty() || !IsSampled(process.pid)) continue;
    tables.Expect(process.pid, *process.mappings, UnwindTables::Expected::kNow);
  }
  for (const ProcessWatch::Busy& process : processes) {
    if (SteadyClock::now() >= until) return;
    // Children may well become programs that others are.
    if (!follows_children_ && !IsSampled(process.pid)) continue;
    tables.FindRuntimes(process.pid, *process.mappings, until);
  }
}

void RunningProcesses::ReadAll() {
  if (reads_) watch_.ReadAll();
}

void RunningProcesses::ExpectBusy(UnwindTables& tables,
                                  const std::function<void()>& make_room) {
  if (!pids_.empty()) return;
  for (const ProcessWatch::Busy& busy : watch_.Busiest(kMaxBusy)) {
    tables.Expect(busy.pid, *busy.mappings, UnwindTables::Expected::kPerhaps);
    make_room();
  }
}

bool RunningProcesses::IsSampled(uint32_t pid) const {
  return pids_.empty() || std::ranges::binary_search(pids_, pid);
}

}  // namespace profd
