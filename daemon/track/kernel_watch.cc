// SPDX-License-Identifier: Apache-2.0
#include "daemon/track/kernel_watch.h"

#include <algorithm>
#include <utility>

namespace profd {

KernelWatch::KernelWatch(Modules modules) {
  if (modules != Modules::kByUevents) return;
  // Absent in some containers; then modules are what they were at the start.
  if (auto uevents = ModuleUevents::Open()) {
    uevents_.emplace(std::move(*uevents));
  }
}

void KernelWatch::Add(uint64_t time_ns, ksym::KernelSymbolChange change) {
  pending_.push_back({time_ns, std::move(change)});
}

bool KernelWatch::Poll() {
  if (uevents_ && uevents_->ReadChanged()) stale_ = true;
  return stale_ || !pending_.empty();
}

void KernelWatch::EndInterval(uint64_t time_ns, RawProfile& profile) {
  // Changes after the interval's end stay for the next one, whose names they
  // are.
  std::ranges::stable_sort(pending_, {}, &Pending::time_ns);
  const auto end =
      std::ranges::upper_bound(pending_, time_ns, {}, &Pending::time_ns);
  for (auto pending = pending_.begin(); pending != end; ++pending) {
    profile.kernel_changes.push_back(std::move(pending->change));
  }
  pending_.erase(pending_.begin(), end);
  profile.kernel_table_stale = std::exchange(stale_, false);
}

}  // namespace profd
