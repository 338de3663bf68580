// SPDX-License-Identifier: Apache-2.0
#include "daemon/service/waiting_counters.h"

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

}  // namespace profd
