#include "daemon/capture/kernel_watch.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace profd {
namespace {

ksym::KernelSymbolChange ToChange(SideBandEvent&& event) {
  using Kind = ksym::KernelSymbolChange::Kind;
  return {.kind = event.kind == SideBandEvent::Kind::kSymbolAdded
                      ? Kind::kAdded
                      : Kind::kRemoved,
          .start = ksym::Address{event.address},
          .size = event.size,
          .name = std::move(event.name),
          .module = event.is_bpf ? "bpf" : ""};
}

}  // namespace

ksym::Result<KernelWatch> KernelWatch::Start(const CpuList& online,
                                             Modules modules) {
  KernelWatch watch{SideBand()};
  auto followed = watch.Follow(online);
  if (!followed) return ksym::Fail(std::move(followed.error()));
  if (modules == Modules::kByUevents) {
    // Absent in some containers; then modules are what they were at the start.
    if (auto uevents = ModuleUevents::Open()) {
      watch.uevents_.emplace(std::move(*uevents));
    }
  }
  return watch;
}

bool KernelWatch::Poll() {
  std::ranges::move(side_band_.Read(), std::back_inserter(pending_));
  if (uevents_ && uevents_->ReadChanged()) stale_ = true;
  return stale_ || !pending_.empty();
}

void KernelWatch::EndInterval(uint64_t time_ns, RawProfile& profile) {
  Poll();
  std::ranges::stable_sort(pending_, {}, &SideBandEvent::time_ns);
  const auto end =
      std::ranges::upper_bound(pending_, time_ns, {}, &SideBandEvent::time_ns);
  for (auto event = pending_.begin(); event != end; ++event) {
    if (event->kind == SideBandEvent::Kind::kLost) {
      stale_ = true;
    } else {
      profile.kernel_changes.push_back(ToChange(std::move(*event)));
    }
  }
  pending_.erase(pending_.begin(), end);
  profile.kernel_table_stale = std::exchange(stale_, false);
}

}  // namespace profd
