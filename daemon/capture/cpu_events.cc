// SPDX-License-Identifier: Apache-2.0
#include "daemon/capture/cpu_events.h"

#include <algorithm>
#include <utility>

namespace profd {

CpuEvents::CpuEvents(EventSpec spec, SamplingRate rate, IdleSamples idle,
                     std::optional<CpuList> wanted, int program_fd)
    : spec_(std::move(spec)),
      rate_(rate),
      idle_(idle),
      wanted_(std::move(wanted)),
      program_fd_(program_fd) {}

ksym::Status CpuEvents::Add(uint32_t cpu) {
  auto event = SamplingEvent::Open(spec_, rate_, idle_, cpu);
  if (!event) {
    // The CPU went away between the reading of the list and the opening.
    if (event.error().code() == ksym::ErrorCode::kNotFound) return {};
    return ksym::Fail(std::move(event.error()));
  }
  // The program first: an event that is enabled without it takes samples that
  // nobody counts.
  auto attached = event->AttachProgram(program_fd_);
  if (attached && enabled_) attached = event->Enable();
  if (!attached) return attached;
  events_.emplace(cpu, std::move(*event));
  return {};
}

ksym::Status CpuEvents::Follow(const CpuList& online) {
  const CpuList present = wanted_ ? Intersect(*wanted_, online) : online;
  std::erase_if(events_, [&](const auto& entry) {
    if (std::ranges::binary_search(present, entry.first)) return false;
    // Its clock is read before it is closed, or the sum would go back.
    const SamplingEvent::Times times = entry.second.ReadTimes();
    closed_.enabled_ns += times.enabled_ns;
    closed_.running_ns += times.running_ns;
    return true;
  });
  for (const uint32_t cpu : present) {
    if (events_.contains(cpu)) continue;
    auto added = Add(cpu);
    if (!added) return added;
  }
  return {};
}

ksym::Status CpuEvents::Enable() {
  // First, so that events of CPUs that come later begin at once.
  enabled_ = true;
  for (auto& [cpu, event] : events_) {
    auto enabled = event.Enable();
    if (!enabled) return enabled;
  }
  return {};
}

void CpuEvents::Disable() {
  // Events of CPUs that come now stay silent.
  enabled_ = false;
  for (auto& [cpu, event] : events_) event.Disable();
}

SamplingEvent::Times CpuEvents::ReadTimes() const {
  SamplingEvent::Times sum = closed_;
  for (const auto& [cpu, event] : events_) {
    const SamplingEvent::Times times = event.ReadTimes();
    sum.enabled_ns += times.enabled_ns;
    sum.running_ns += times.running_ns;
  }
  return sum;
}

CpuList CpuEvents::cpus() const {
  CpuList list;
  for (const auto& [cpu, event] : events_) list.push_back(cpu);
  return list;
}

}  // namespace profd
