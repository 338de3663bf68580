// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "daemon/profile/parked.h"
#include "daemon/profile/profile.h"

namespace profd {

// What threads do with their time. Parked time is blocked time, too, but is
// kept apart: it is not what one looks for.
enum class ThreadState : uint8_t { kRunning, kRunnable, kBlocked, kParked };
inline constexpr size_t kThreadStates = 4;

// Nanoseconds of threads' time by state; a thread that is parked is in that
// sum alone.
class TimesByState {
 public:
  uint64_t& operator[](ThreadState state) {
    return ns_[static_cast<size_t>(state)];
  }
  uint64_t operator[](ThreadState state) const {
    return ns_[static_cast<size_t>(state)];
  }
  uint64_t sum() const { return ns_[0] + ns_[1] + ns_[2] + ns_[3]; }
  TimesByState& operator+=(const TimesByState& other);
  friend bool operator==(const TimesByState&, const TimesByState&) = default;

 private:
  std::array<uint64_t, kThreadStates> ns_ = {};
};

// A function, a command or a thread and the time of threads that is its own.
struct TopRow {
  std::string name = {};   // printable: of the function or the command
  std::string place = {};  // of a thread: where most of its time is
  uint32_t pid = 0;        // of a thread
  uint32_t tid = 0;
  size_t threads = 0;  // of a command
  // A function's where it was the innermost one. A wait's is the user's
  // function that made the system call, or without user code the reason of the
  // wait.
  TimesByState self = {};
  // A function's where it was in the stack at all. Else equal to self.
  TimesByState total = {};
};

// All rows of a profile in no order, and what stands above them.
struct TopTables {
  std::vector<TopRow> functions;
  std::vector<TopRow> commands;
  std::vector<TopRow> threads;
  TimesByState sum;
  uint64_t duration_ns = 0;
  uint64_t lost = 0;  // samples
  size_t cpus = 0;    // that were sampled; 0: not known
};

// The time of each thread in a profile as its samples have it: its life within
// the profile, as far as can be known while the thread goes on. O(samples).
std::vector<ThreadLife> LivesInSamples(const Profile& profile);

// Adds up the samples of a profile in which each has its tid. Those that are
// marked as parked have one function, "[parked]". Cost: goes over every frame
// of every stack.
TopTables MakeTopTables(const Profile& profile);

}  // namespace profd
