// SPDX-License-Identifier: Apache-2.0
#include "daemon/service/capture_counters.h"

#include <vector>

namespace profd {

void CountWaits(const RawProfile& raw, ServiceCounters& counters) {
  const std::vector<SampleKind>& kinds = raw.metadata.kinds;
  const SampleKind* runnable = FindKind(kinds, kRunnableKind);
  const SampleKind* blocked = FindKind(kinds, kBlockedKind);
  for (const RawSample& sample : raw.samples) {
    const SampleKind* kind = &kinds[sample.kind];
    if (kind == runnable) {
      counters.waiting_runnable += sample.count;
      counters.waiting_runnable_ns += sample.value;
    } else if (kind == blocked) {
      counters.waiting_blocked += sample.count;
      counters.waiting_blocked_ns += sample.value;
    }
  }
}

void ShowWaits(const WaitStatistics& now, ServiceCounters& counters) {
  counters.waiting_thinned = now.waits.thinned;
  counters.waiting_unseen = now.waits.unseen;
  counters.waiting_crowded = now.waits.crowded;
  counters.waiting_untaken = now.waits.untaken;
  counters.waiting_walks = now.walks.walks;
  counters.waiting_walks_skipped = now.walks.skipped;
  counters.waiting_walk_ns = now.walks.walk_ns;
  counters.waiting_put_off = now.walks.put_off;
  counters.waiting_sleepers = now.sleepers;
}

void ShowRuntimes(const RuntimeStatistics& runtimes,
                  ServiceCounters& counters) {
  counters.runtime_processes = runtimes.processes;
  counters.runtime_bytes = runtimes.code_bytes;
  counters.runtime_functions = runtimes.codes;
  counters.runtime_functions_unread = runtimes.codes_unread;
  counters.runtime_functions_refused = runtimes.codes_refused;
  counters.runtime_runs = runtimes.runs.all;
  counters.runtime_runs_torn = runtimes.runs.torn;
  counters.runtime_runs_cut = runtimes.runs.cut;
  counters.runtime_runs_not_placed = runtimes.runs.not_placed;
  counters.runtime_sleepers_read = runtimes.sleepers.read;
  counters.runtime_sleepers_went_on = runtimes.sleepers.went_on;
  counters.runtime_sleepers_out_of_time = runtimes.sleepers.out_of_time;
  counters.runtime_frames_unnamed = runtimes.frames_unnamed;
  counters.runtime_inlined_not_described = runtimes.inlined.not_described;
  counters.runtime_inlined_too_much = runtimes.inlined.too_much;
  counters.runtime_inlined_corrupt = runtimes.inlined.corrupt;
}

}  // namespace profd
