// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>

namespace profd {

// The clock of pauses and deadlines; the host's time does not move it.
using SteadyClock = std::chrono::steady_clock;

// Tells the time. A class with a policy in time gets one of these instead of
// reading the clock, so that its tests need not wait.
using SteadyNow = std::function<SteadyClock::time_point()>;

}  // namespace profd
