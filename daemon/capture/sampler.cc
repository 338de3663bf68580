// SPDX-License-Identifier: Apache-2.0
#include "daemon/capture/sampler.h"

#include <iterator>
#include <utility>

namespace profd {
namespace {

using ksym::Fail;

// A new counter needs a line here, or what it counts is lost silently.
static_assert(sizeof(profile_stats) == 6 * sizeof(uint64_t));

void Add(const profile_stats& more, profile_stats& sum) {
  sum.taken += more.taken;
  sum.lost_counts_full += more.lost_counts_full;
  sum.lost_ring_full += more.lost_ring_full;
  sum.hints_dropped += more.hints_dropped;
  sum.follow_full += more.follow_full;
  sum.copies_refused += more.copies_refused;
}

}  // namespace

ksym::Status Samplers::Add(std::unique_ptr<Sampler> sampler) {
  const std::vector<SampleKind>& more = sampler->kinds();
  if (kinds_.size() + more.size() > kMaxSampleKinds) {
    return Fail(ksym::ErrorCode::kLimit, "there are too many kinds of samples");
  }
  // A sampler counts its kinds from 0; Take() moves them behind the others'.
  const auto first = static_cast<SampleKindId>(kinds_.size());
  kinds_.insert(kinds_.end(), more.begin(), more.end());
  members_.push_back({.sampler = std::move(sampler), .first_kind = first});
  return {};
}

ksym::Status Samplers::Follow(const CpuList& online) {
  for (Member& member : members_) {
    auto followed = member.sampler->Follow(online);
    if (!followed) return followed;
  }
  return {};
}

ksym::Status Samplers::Enable() {
  // After an error those before it go on: the capture is given up, and they end
  // with it.
  for (Member& member : members_) {
    auto enabled = member.sampler->Enable();
    if (!enabled) return enabled;
  }
  return {};
}

void Samplers::Disable() {
  for (Member& member : members_) member.sampler->Disable();
}

void Samplers::MakeRoom() {
  for (Member& member : members_) member.sampler->MakeRoom();
}

ksym::Result<std::vector<SampledCount>> Samplers::Take(uint32_t set) {
  std::vector<SampledCount> all;
  for (Member& member : members_) {
    auto counts = member.sampler->Take(set);
    if (!counts) return Fail(std::move(counts.error()));
    for (SampledCount& count : *counts) {
      count.kind = static_cast<SampleKindId>(count.kind + member.first_kind);
    }
    // Most captures have one sampler, and its counts can be many.
    if (all.empty()) {
      all = std::move(*counts);
    } else {
      std::ranges::move(*counts, std::back_inserter(all));
    }
  }
  return all;
}

ksym::Status Samplers::ReadThreads(const Sampler::RecordTaker& take) {
  for (Member& member : members_) {
    auto read = member.sampler->ReadThreads(take);
    if (!read) return read;
  }
  return {};
}

ksym::Result<bool> Samplers::ReadSleepers(const Sampler::RecordTaker& take) {
  bool any = false;
  for (Member& member : members_) {
    const auto read = member.sampler->ReadSleepers(take);
    if (!read) return Fail(read.error());
    any = any || *read;
  }
  return any;
}

ksym::Result<profile_stats> Samplers::ReadStats(uint32_t set) {
  profile_stats sum = {};
  for (Member& member : members_) {
    const auto stats = member.sampler->ReadStats(set);
    if (!stats) return Fail(stats.error());
    profd::Add(*stats, sum);
  }
  return sum;
}

SamplingEvent::Times Samplers::ReadTimes() const {
  SamplingEvent::Times sum;
  for (const Member& member : members_) {
    const SamplingEvent::Times times = member.sampler->ReadTimes();
    sum.enabled_ns += times.enabled_ns;
    sum.running_ns += times.running_ns;
  }
  return sum;
}

// The CPU's sampler is the first one where there is one, and only that can be
// kept to some CPUs.
CpuList Samplers::cpus() const { return members_.front().sampler->cpus(); }

}  // namespace profd
