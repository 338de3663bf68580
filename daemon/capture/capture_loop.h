// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>

#include "daemon/base/steady_clock.h"
#include "daemon/capture/capture.h"

namespace profd {

// How often a capture is looked after. What is polled seldom costs less; what
// is polled often has its tables and its reports sooner.
struct CapturePace {
  using Duration = std::chrono::steady_clock::duration;

  Duration poll;
  Duration poll_building;  // while tables are being built
  Duration poll_filling;   // while the kernel has much to report
  Duration drain;
  Duration tables_budget;  // of placing tables, each time
  // A table that is not there so long before the end is not asked for.
  Duration tables_margin = {};
  // What is left after the last drain before the end is taken by Stop().
  Duration last_drain = {};
  // How long a drain waits for tables that copied stacks need.
  std::chrono::milliseconds tables_patience = Capture::kTablesPatience;
};

// When to poll and to drain: the clockwork of a capture, without the capture.
class CaptureTimes {
 public:
  // `end`: when sampling ends; max(): nobody knows.
  CaptureTimes(const CapturePace& pace, SteadyClock::time_point begin,
               SteadyClock::time_point end = SteadyClock::time_point::max())
      : pace_(pace), next_drain_(begin + pace.drain), end_(end) {}

  struct State {
    bool is_building = false;
    bool is_filling = false;
  };
  SteadyClock::duration UntilPoll(const State& state) const;
  SteadyClock::time_point TablesDeadline() const;
  // Whether it is time, or `soon`, and worth it before the end.
  bool IsDrainDue(SteadyClock::time_point now, bool soon) const;
  // The next one is as the pace says on average, and half of that away at
  // least; one that came early counts.
  void NoteDrain(SteadyClock::time_point now);

 private:
  CapturePace pace_;
  SteadyClock::time_point next_drain_;
  SteadyClock::time_point end_;
};

// Looks after a capture, which lives longer: the caller waits for Pause(), then
// calls Step(), and Drain() when that says so. Not thread-safe.
class CaptureLoop {
 public:
  CaptureLoop(Capture& capture, const CapturePace& pace,
              SteadyClock::time_point begin,
              SteadyClock::time_point end = SteadyClock::time_point::max())
      : capture_(&capture), pace_(pace), times_(pace, begin, end) {}

  // 0 the first time: much came since the rings were opened.
  SteadyClock::duration Pause() const;
  // Takes in what came and has tables built. kDrain: it is time.
  enum class Due { kNothing, kDrain };
  Due Step();
  // Everything since the last one; see Capture::Drain().
  ksym::Result<RawProfile> Drain();

  Capture& capture() { return *capture_; }

 private:
  Capture* capture_;
  CapturePace pace_;
  CaptureTimes times_;
  bool has_polled_ = false;
};

}  // namespace profd
