// SPDX-License-Identifier: Apache-2.0
#include "daemon/service/capture_counters.h"

#include <array>

#include <vector>

namespace profd {

void CountWaits(const RawProfile& raw, ServiceCounters& counters) {
  const std::vector<SampleKind>& kinds = raw.metadata.kinds;
  // Found once, so that no names are compared for each sample.
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
  counters.runtime_copies_read = runtimes.copies.read;
  counters.runtime_copies_uncertain = runtimes.copies.uncertain;
  counters.runtime_copies_too_old = runtimes.copies.too_old;
  counters.runtime_copies_out_of_time = runtimes.copies.out_of_time;
  counters.runtime_frames_unnamed = runtimes.frames_unnamed;
  counters.runtime_inlined_not_described = runtimes.inlined.not_described;
  counters.runtime_inlined_too_much = runtimes.inlined.too_much;
  counters.runtime_inlined_corrupt = runtimes.inlined.corrupt;
}

void ShowLabels(const LabelStatistics& labels, ServiceCounters& counters) {
  using Number = ServiceCounters::Number ServiceCounters::*;
  constexpr std::array<Number, kNameResults> kByName = {
      &ServiceCounters::container_names_found,
      &ServiceCounters::container_names_pod_only,
      &ServiceCounters::container_names_not_found,
      &ServiceCounters::container_names_contradictory,
      &ServiceCounters::container_names_not_trusted,
      &ServiceCounters::container_names_unreadable,
      &ServiceCounters::container_names_too_large,
      &ServiceCounters::container_names_not_in_time};
  constexpr std::array<Number, kEnvironmentResults> kByEnvironment = {
      &ServiceCounters::environments_read,
      &ServiceCounters::environments_gone,
      &ServiceCounters::environments_too_large,
      &ServiceCounters::environments_malformed,
      &ServiceCounters::environments_unreadable,
      &ServiceCounters::environments_not_in_time,
      &ServiceCounters::environments_no_room};
  for (size_t i = 0; i < kByName.size(); ++i) {
    counters.*kByName[i] = labels.containers[i];
  }
  for (size_t i = 0; i < kByEnvironment.size(); ++i) {
    counters.*kByEnvironment[i] = labels.environments[i];
  }
  counters.container_names_no_room = labels.containers_without_room;
  counters.environment_attributes_refused = labels.attributes_refused;
}

}  // namespace profd
