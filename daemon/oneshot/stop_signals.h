// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <memory>

#include "ksym/base/result.h"
#include "ksym/base/unique_fd.h"

namespace profd {

// SIGINT, SIGTERM and SIGCHLD as events to wait for. The first SIGINT or
// SIGTERM ends the capture, whenever it comes; where nobody waits for events
// any more it has no effect, as what it would end has ended. The second one
// kills the program, whatever this thread is at: another one looks for it,
// which gets its turn at once on a machine with more work than CPUs
// (own_priority.h).
class StopSignals {
 public:
  // Blocks the signals for this thread; call before any other thread starts,
  // and after ChooseOwnPriority(). Destroy when all that may wait is over.
  static ksym::Result<StopSignals> Install();
  StopSignals(StopSignals&&) noexcept;
  ~StopSignals();

  enum class Event { kTimeout, kStop, kChild };
  // At most `timeout`. kStop is told once.
  Event Wait(std::chrono::nanoseconds timeout);

 private:
  class Watcher;
  StopSignals(std::unique_ptr<Watcher> watcher, ksym::UniqueFd children);

  std::unique_ptr<Watcher> watcher_;
  ksym::UniqueFd children_;  // a signalfd of SIGCHLD
};

}  // namespace profd
