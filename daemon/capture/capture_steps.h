// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>

#include "daemon/base/steady_clock.h"
#include "daemon/profile/raw_profile.h"
#include "ksym/base/result.h"

namespace profd {

// The steps that a running capture needs again and again; CaptureLoop knows
// when. One thread calls all of them.
class CaptureSteps {
 public:
  virtual ~CaptureSteps() = default;

  // Takes new stacks and processes in. Every 100 ms or so, where it is not
  // quiet: the ring buffer holds what comes in between. Cost: 0.2 us per new
  // stack, and the reports of all processes. kDrainSoon: the kernel's symbols
  // changed, and what was sampled before should not be mixed with what comes
  // after.
  enum class Advice : uint8_t { kGoOn, kDrainSoon };
  virtual Advice Poll() = 0;
  // Has unwind tables built for the processes that were seen in Poll(), in
  // a thread, and gives them those that are ready; see UnwindTables::Build().
  // Until then their stacks are copied.
  virtual void BuildTables(SteadyClock::duration budget,
                           SteadyClock::time_point deadline) = 0;
  // More tables will be ready soon: a caller that polls sooner than otherwise
  // has them in use sooner.
  virtual bool IsBuildingTables() const = 0;
  // Functions come whose names are read from a process that moves and frees
  // them: a caller that polls sooner than otherwise has more of them.
  virtual bool IsNaming() const = 0;
  // The kernel has much to report: a caller that polls sooner than otherwise
  // loses less.
  virtual bool IsFilling() const = 0;
  // Whether nothing came lately that should be read soon: a caller that polls
  // less often then, and as soon as bell() is readable, loses nothing.
  virtual bool IsQuiet() const = 0;
  // For poll(2), while it is quiet; -1: it never is.
  virtual int bell() const = 0;
  // Everything since the last one, with the accounting of that interval.
  // Sampling goes on. Sleeps for an RCU grace period (1 to 100 ms), and waits
  // for up to `patience` for tables that copied stacks need.
  virtual ksym::Result<RawProfile> Drain(
      std::chrono::milliseconds patience) = 0;
};

}  // namespace profd
