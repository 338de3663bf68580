// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <utility>

#include "daemon/base/steady_clock.h"
#include "daemon/capture/capture_steps.h"

namespace profd {

// How often a capture is looked after. Seldom polls cost less; often ones bring
// tables and reports sooner.
struct CapturePace {
  using Duration = SteadyClock::duration;

  Duration poll;
  // While tables are being built, and for `beginning` from the begin on.
  Duration poll_building;
  Duration poll_filling;  // while the kernel has much to report
  // While functions come whose names are read from processes: what one calls
  // for the first time so shortly before its end has no name.
  Duration poll_naming;
  // Where it is quiet, but for bells and drains; 0: as often as otherwise.
  Duration poll_quiet = {};
  // From one drain to the next. A drain that is late makes the one after it
  // come sooner, but `drain_gap` is always left between the end of one and the
  // beginning of the next. Equal: a drain counts from the end of the last one.
  Duration drain;
  Duration drain_gap;
  Duration tables_budget;  // of placing tables, each time
  // A table that is not there so long before the end is not asked for.
  Duration tables_margin = {};
  // A command's process is new then, and may not live for long.
  Duration beginning = {};
  // So near to the end no drain begins: Stop() takes the rest.
  Duration last_drain = {};
  // How long a drain waits for tables that copied stacks need.
  std::chrono::milliseconds tables_patience;
};

// When to poll and to drain: the clockwork of a capture, without the capture.
class CaptureTimes {
 public:
  // When sampling begins and ends; max(): nobody knows.
  struct Span {
    SteadyClock::time_point begin;
    SteadyClock::time_point end = SteadyClock::time_point::max();
  };
  CaptureTimes(const CapturePace& pace, const Span& span)
      : pace_(pace),
        begin_(span.begin),
        next_drain_(span.begin + pace.drain),
        end_(span.end) {}

  struct State {
    bool is_building = false;
    bool is_filling = false;
    bool is_naming = false;
    bool is_quiet = false;
  };
  SteadyClock::duration UntilPoll(SteadyClock::time_point now,
                                  const State& state) const;
  SteadyClock::time_point TablesDeadline() const;
  // Whether it is time, or `soon`, and worth it before the end.
  bool IsDrainDue(SteadyClock::time_point now, bool soon) const;
  // A drain has ended; see CapturePace for when the next one is due. One that
  // came before its time begins a new period.
  void NoteDrain(SteadyClock::time_point now);

 private:
  CapturePace pace_;
  SteadyClock::time_point begin_;
  SteadyClock::time_point next_drain_;
  SteadyClock::time_point end_;
};

// Looks after a capture, which lives longer: the caller waits for Pause(), or
// until bell() is readable, then calls Step(), and Drain() when that says so.
// Not thread-safe.
class CaptureLoop {
 public:
  CaptureLoop(CaptureSteps& capture, const CapturePace& pace,
              const CaptureTimes::Span& span, SteadyNow now = SteadyClock::now)
      : capture_(&capture),
        pace_(pace),
        times_(pace, span),
        now_(std::move(now)) {}

  // How long to wait for the next step. 0 the first time: much came since the
  // rings were opened.
  SteadyClock::duration Pause() const;
  // For poll(2) during this pause; -1: there is none.
  int bell() const { return capture_->IsQuiet() ? capture_->bell() : -1; }
  // Takes in what came and has tables built. kDrain: it is time.
  enum class Due { kNothing, kDrain };
  Due Step();
  // Everything since the last one; see CaptureSteps::Drain().
  ksym::Result<RawProfile> Drain();

 private:
  CaptureSteps* capture_;
  CapturePace pace_;
  CaptureTimes times_;
  SteadyNow now_;
  bool has_polled_ = false;
};

}  // namespace profd
