// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <linux/perf_event.h>

#include <cstdint>

namespace profd {

// How long an event was enabled, and how long it counted meanwhile.
struct EventTimes {
  uint64_t enabled_ns = 0;
  uint64_t running_ns = 0;
};

// The read_format of an event that ReadEventTimes() reads.
inline constexpr uint64_t kEventTimesFormat =
    PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;

// Zeros when the event cannot be read. Interrupts the event's CPU, which takes
// some microseconds.
EventTimes ReadEventTimes(int fd);

// Whether an event of a CPU still counts. It dies when its CPU leaves, and is
// not revived when the CPU comes back (perf_event_exit_cpu() in the kernel).
// Nothing tells of that but its clock, which stands.
class EventPulse {
 public:
  // False: the clock has not gone on since the last call. Only the clock of an
  // event that is enabled goes on.
  bool Beats(const EventTimes& times);

 private:
  uint64_t enabled_ns_ = 0;  // at the last call
};

}  // namespace profd
