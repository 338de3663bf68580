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
  events_.emplace(cpu, Entry{.event = std::move(*event), .pulse = {}});
  return {};
}

ksym::Status CpuEvents::Follow(const CpuList& online) {
  const CpuList present = wanted_ ? Intersect(*wanted_, online) : online;
  for (auto next = events_.begin(); next != events_.end();) {
    const auto member = next++;
    auto& [cpu, entry] = *member;
    const bool is_present = std::ranges::binary_search(present, cpu);
    // The clock of an event that is silent stands, too.
    if (is_present && !enabled_) continue;
    const EventTimes times = entry.event.ReadTimes();
    if (is_present && entry.pulse.Beats(times)) continue;
    // What it ran is kept, or the sum would go back.
    closed_.enabled_ns += times.enabled_ns;
    closed_.running_ns += times.running_ns;
    events_.erase(member);
  }
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
  for (auto& [cpu, entry] : events_) {
    auto enabled = entry.event.Enable();
    if (!enabled) return enabled;
  }
  return {};
}

void CpuEvents::Disable() {
  // Events of CPUs that come now stay silent.
  enabled_ = false;
  for (auto& [cpu, entry] : events_) entry.event.Disable();
}

EventTimes CpuEvents::ReadTimes() const {
  EventTimes sum = closed_;
  for (const auto& [cpu, entry] : events_) {
    const EventTimes times = entry.event.ReadTimes();
    sum.enabled_ns += times.enabled_ns;
    sum.running_ns += times.running_ns;
  }
  return sum;
}

CpuList CpuEvents::cpus() const {
  CpuList list;
  for (const auto& [cpu, entry] : events_) list.push_back(cpu);
  return list;
}

}  // namespace profd
