// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "daemon/capture/bpf_object.h"
#include "daemon/track/process_watch.h"
#include "daemon/unwind/unwind_tables.h"

namespace profd {

// The processes that run already when a capture begins. Their histories and
// tables are made ready here, for their first samples.
class RunningProcesses {
 public:
  // The watch outlives this.
  RunningProcesses(const BpfConfig& config, ProcessWatch& watch);

  // Before the first sample, 20 ms at the most, or 200 ms where processes were
  // chosen. Has tables made for chosen ones, and looks for interpreters, so
  // that the first samples have their frames. Interpreters that are not found
  // in time are found once their processes are sampled.
  void Prepare(UnwindTables& tables);
  // Reads what all processes map, some 20 us each, where user stacks are taken.
  void ReadAll();
  // Where all processes are sampled: has tables made for those that use the
  // CPUs most, as their stacks need not be copied then. Calls `make_room` after
  // each.
  void ExpectBusy(UnwindTables& tables, const std::function<void()>& make_room);

 private:
  bool IsSampled(uint32_t pid) const;

  ProcessWatch& watch_;
  bool reads_;
  std::vector<uint32_t> pids_;  // that are sampled, sorted; empty: all
  bool follows_children_;
};

}  // namespace profd
