// SPDX-License-Identifier: Apache-2.0
#include "daemon/capture/capture_loop.h"

#include <algorithm>

#include "daemon/base/steady_clock.h"

namespace profd {

SteadyClock::duration CaptureTimes::UntilPoll(const State& state) const {
  // A ring that is filling loses what comes next; a table only comes later.
  if (state.is_filling) return pace_.poll_filling;
  return state.is_building ? pace_.poll_building : pace_.poll;
}

SteadyClock::time_point CaptureTimes::TablesDeadline() const {
  return end_ == SteadyClock::time_point::max() ? end_
                                                : end_ - pace_.tables_margin;
}

bool CaptureTimes::IsDrainDue(SteadyClock::time_point now, bool soon) const {
  if (!soon && now < next_drain_) return false;
  // Draining sleeps, and there is another one at the end.
  return end_ == SteadyClock::time_point::max() ||
         end_ - now >= pace_.last_drain;
}

void CaptureTimes::NoteDrain(SteadyClock::time_point now) {
  const bool was_early = now < next_drain_;
  // Where a drain takes as long as that, others want the CPU as well.
  next_drain_ =
      was_early ? now + pace_.drain
                : std::max(next_drain_ + pace_.drain, now + pace_.drain / 2);
}

SteadyClock::duration CaptureLoop::Pause() const {
  if (!has_polled_) return {};
  return times_.UntilPoll({.is_building = capture_->IsBuildingTables(),
                           .is_filling = capture_->IsFilling()});
}

CaptureLoop::Due CaptureLoop::Step() {
  has_polled_ = true;
  const auto advice = capture_->Poll();
  capture_->BuildTables(pace_.tables_budget, times_.TablesDeadline());
  const bool soon = advice == Capture::Advice::kDrainSoon;
  return times_.IsDrainDue(SteadyClock::now(), soon) ? Due::kDrain
                                                     : Due::kNothing;
}

ksym::Result<RawProfile> CaptureLoop::Drain() {
  // As of its end: what it waited is not made up for by a shorter pause.
  auto raw = capture_->Drain(pace_.tables_patience);
  times_.NoteDrain(SteadyClock::now());
  return raw;
}

}  // namespace profd
