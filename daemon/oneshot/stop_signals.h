// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>

#include "ksym/base/result.h"
#include "ksym/base/unique_fd.h"

namespace profd {

// SIGINT, SIGTERM and SIGCHLD as events to wait for. The first SIGINT or
// SIGTERM ends the capture, whenever it comes; after it both have their
// ordinary effect again, so that a second one aborts.
class StopSignals {
 public:
  // Blocks the signals for this thread; call before any other thread starts.
  static ksym::Result<StopSignals> Install();

  enum class Event { kTimeout, kStop, kChild };
  // At most `timeout`.
  Event Wait(std::chrono::nanoseconds timeout);
  // For work that does not look for signals, after the last Wait(): the first
  // SIGINT or SIGTERM, also one that is pending, has no effect. What it would
  // end has ended.
  void StopLooking();

 private:
  explicit StopSignals(ksym::UniqueFd fd) : fd_(std::move(fd)) {}

  ksym::UniqueFd fd_;
  bool had_first_ = false;
};

}  // namespace profd
