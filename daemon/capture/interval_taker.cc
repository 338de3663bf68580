// SPDX-License-Identifier: Apache-2.0
#include "daemon/capture/interval_taker.h"

#include <time.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "daemon/base/now_ns.h"
#include "daemon/capture/bpf_object.h"
#include "daemon/capture/capture_metadata.h"
#include "daemon/capture/interval_builder.h"
#include "daemon/capture/sampled_stacks.h"
#include "daemon/capture/sampler.h"
#include "daemon/capture/thread_times.h"
#include "daemon/perf/cpu_list.h"
#include "daemon/track/kernel_watch.h"

namespace profd {

using ksym::Fail;

IntervalTaker::IntervalTaker(const Parts& parts, CaptureMetadata metadata,
                             SampleKindId first_wait_kind)
    : parts_(parts),
      metadata_(std::move(metadata)),
      first_wait_kind_(first_wait_kind) {}

void IntervalTaker::Begin() {
  metadata_.start_unix_ns = NowNs(CLOCK_REALTIME);
  start_ns_ = NowNs();
}

UnwindStatistics IntervalTaker::unwind_statistics() const {
  UnwindStatistics statistics = parts_.stacks.statistics();
  statistics.copies_refused = accounts_.copies_refused();
  return statistics;
}

ksym::Result<RawProfile> IntervalTaker::Take(
    const TakenSet& taken, std::chrono::milliseconds patience) {
  const uint32_t set = taken.set;
  SampledStacks& stacks = parts_.stacks;
  // The walk of copies comes first: its counts are taken below.
  stacks.WalkRest(set, patience);
  auto counts = parts_.samplers.Take(set);
  if (!counts) return Fail(std::move(counts.error()));
  IntervalBuilder builder({parts_.object, stacks.records(), stacks.runtimes(),
                           stacks.wakers(), parts_.watch},
                          taken, began());
  for (const SampledCount& count : *counts) builder.Add(count);
  for (SampledCount& count : stacks.TakeWalked(set)) {
    count.kind = KindOf(count.key);
    builder.Add(count);
  }
  parts_.thread_times.AddForgottenWakers(builder.AddWakers());
  RawProfile profile = std::move(builder).Finish();
  // The profile has its stacks and mappings now: both may be forgotten. The set
  // must be empty before the next flip makes it the one that is written.
  auto cleared = stacks.Clear(set);
  if (!cleared) return Fail(std::move(cleared.error()));
  parts_.watch.EndInterval(taken);
  auto accounted = Account(set, profile);
  if (!accounted) return Fail(std::move(accounted.error()));
  Describe(taken.end_ns, profile);
  parts_.kernel_watch.EndInterval(taken.end_ns, profile);
  return profile;
}

// The kind of a sample whose stack was copied.
SampleKindId IntervalTaker::KindOf(const profile_key& key) const {
  if (key.kind == PROFILE_KIND_CPU) return 0;
  // The dump has one kind, in the place of those of waits.
  if (key.kind == PROFILE_KIND_THREAD) return first_wait_kind_;
  return static_cast<SampleKindId>(first_wait_kind_ + key.kind -
                                   PROFILE_KIND_RUNNABLE);
}

ksym::Status IntervalTaker::Account(uint32_t set, RawProfile& profile) {
  auto stats = parts_.samplers.ReadStats(set);
  if (!stats) return Fail(std::move(stats.error()));
  // Sleepers whose stacks are known are counted here, and not by the sampler.
  stats->taken += parts_.stacks.slept(set);
  const uint64_t before = accounts_.copies_refused();
  std::ranges::move(accounts_.Count(set, *stats, parts_.watch.statistics(),
                                    profile.accounting),
                    std::back_inserter(metadata_.warnings));
  parts_.stacks.AdaptCopies(accounts_.copies_refused() - before);
  accounts_.CountTimes(parts_.samplers, NowNs(), profile.accounting);
  return {};
}

void IntervalTaker::Describe(uint64_t end_ns, RawProfile& profile) {
  metadata_.cpus = FormatCpuList(parts_.samplers.cpus());
  if (UnwindTables* tables = parts_.stacks.tables()) {
    std::ranges::move(tables->TakeWarnings(),
                      std::back_inserter(metadata_.warnings));
  }
  std::ranges::move(parts_.stacks.TakeRuntimeWarnings(),
                    std::back_inserter(metadata_.warnings));
  profile.metadata = metadata_;
  profile.metadata.unwind_tables = DescribeTables(unwind_statistics());
  metadata_.warnings.clear();  // each is given once
  // The next interval begins where this one ends, by both clocks.
  profile.metadata.duration_ns = end_ns - start_ns_;
  metadata_.start_unix_ns += end_ns - start_ns_;
  start_ns_ = end_ns;
}

}  // namespace profd
