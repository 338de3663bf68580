// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <chrono>

#include "daemon/base/steady_clock.h"

namespace profd {

// Time for work that others ask for: so much at once, and that share of the
// time that passes. Not thread-safe.
class TimeAllowance {
 public:
  TimeAllowance(SteadyClock::duration at_once, double share,
                SteadyClock::time_point now)
      : at_once_(at_once), share_(share), left_(at_once), since_(now) {}

  // Takes what has come to it since.
  bool HasAny(SteadyClock::time_point now) {
    const auto more = std::chrono::duration<double>(now - since_) * share_;
    left_ = std::min<std::chrono::duration<double>>(at_once_, left_ + more);
    since_ = now;
    return left_.count() > 0;
  }
  // There may be less than none then, which has to come back first.
  void Spend(SteadyClock::duration time) { left_ -= time; }

 private:
  SteadyClock::duration at_once_;
  double share_;
  std::chrono::duration<double> left_;
  SteadyClock::time_point since_;
};

}  // namespace profd
