#pragma once

#include <chrono>

#include "ksym/base/result.h"
#include "ksym/base/unique_fd.h"

namespace profd {

// SIGINT, SIGTERM and SIGCHLD as events to wait for. The first SIGINT or
// SIGTERM ends the capture; after it both have their ordinary effect again,
// so that a second one aborts.
class StopSignals {
 public:
  // Blocks the signals for this thread; call before any other thread starts.
  static ksym::Result<StopSignals> Install();

  enum class Event { kTimeout, kStop, kChild };
  // At most `timeout`.
  Event Wait(std::chrono::nanoseconds timeout);
  // From now on both signals have their ordinary effect; one that is pending
  // has it at once. For work that nobody could end otherwise.
  static void Release();

 private:
  explicit StopSignals(ksym::UniqueFd fd) : fd_(std::move(fd)) {}

  ksym::UniqueFd fd_;
};

}  // namespace profd
