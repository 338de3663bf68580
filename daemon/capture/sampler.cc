// SPDX-License-Identifier: Apache-2.0
#include "daemon/capture/sampler.h"

#include <iterator>
#include <utility>

#include "daemon/capture/add_stats.h"

namespace profd {
namespace {

using ksym::Fail;

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
    AddStats(*stats, sum);
  }
  return sum;
}

EventTimes Samplers::ReadTimes() const {
  EventTimes sum;
  for (const Member& member : members_) {
    const EventTimes times = member.sampler->ReadTimes();
    sum.enabled_ns += times.enabled_ns;
    sum.running_ns += times.running_ns;
  }
  return sum;
}

// The CPU's sampler is the first one where there is one, and only that can be
// kept to some CPUs.
CpuList Samplers::cpus() const { return members_.front().sampler->cpus(); }

}  // namespace profd
