// SPDX-License-Identifier: Apache-2.0
#include "daemon/capture/capture_loop.h"

#include <algorithm>
#include <optional>

#include "daemon/base/steady_clock.h"

namespace profd {

SteadyClock::duration CaptureTimes::UntilPoll(SteadyClock::time_point now,
                                              const State& state) const {
  // A ring that is filling loses what comes next, and a process that ends takes
  // its functions' names along; a table only comes later. The shortest holds.
  const bool is_beginning = now < begin_ + pace_.beginning;
  std::optional<SteadyClock::duration> pause;
  const auto at_most = [&](bool applies, SteadyClock::duration time) {
    if (applies) pause = std::min(pause.value_or(time), time);
  };
  at_most(state.is_filling, pace_.poll_filling);
  at_most(state.is_naming, pace_.poll_naming);
  at_most(state.is_building || is_beginning, pace_.poll_building);
  if (pause) return *pause;
  if (!state.is_quiet || pace_.poll_quiet <= pace_.poll) return pace_.poll;
  // A drain polls as well, so that one wake-up does for both.
  return std::clamp(next_drain_ - now, SteadyClock::duration(0),
                    pace_.poll_quiet);
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
  // A drain that was asked for early leaves nothing to make up for.
  const auto last = std::min(now, next_drain_);
  next_drain_ = std::max(last + pace_.drain, now + pace_.drain_gap);
}

SteadyClock::duration CaptureLoop::Pause() const {
  if (!has_polled_) return {};
  return times_.UntilPoll(now_(), {.is_building = capture_->IsBuildingTables(),
                                   .is_filling = capture_->IsFilling(),
                                   .is_naming = capture_->IsNaming(),
                                   .is_quiet = capture_->IsQuiet()});
}

CaptureLoop::Due CaptureLoop::Step() {
  has_polled_ = true;
  // Polled first: tables are built for the processes that were just reported.
  const auto advice = capture_->Poll();
  capture_->BuildTables(pace_.tables_budget, times_.TablesDeadline());
  const bool soon = advice == CaptureSteps::Advice::kDrainSoon;
  return times_.IsDrainDue(now_(), soon) ? Due::kDrain : Due::kNothing;
}

ksym::Result<RawProfile> CaptureLoop::Drain() {
  auto raw = capture_->Drain(pace_.tables_patience);
  // Only now: it may have slept for longer than the gap to the next one.
  times_.NoteDrain(now_());
  return raw;
}

}  // namespace profd
