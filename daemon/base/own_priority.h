// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string_view>

namespace profd {

// How threads of ours that must not wait are scheduled: those that empty the
// sampler's ring, build unwind tables and find names. On a machine with more
// work than CPUs they would get their turn too late otherwise.
enum class OwnPriority : uint8_t {
  kAuto,      // the first of the others that is permitted
  kRealtime,  // SCHED_FIFO at its lowest priority
  kNice,      // nice -20; within the cgroup and the autogroup only
  kNormal,    // as the program was started
};
std::string_view OwnPriorityName(OwnPriority priority);
std::optional<OwnPriority> ParseOwnPriority(std::string_view name);

// Decides how each PriorityShare of this process is scheduled, and returns what
// it came to: kRealtime and kNice need CAP_SYS_NICE (or the limits of
// RLIMIT_RTPRIO and RLIMIT_NICE) and become kNormal without. Also kNormal where
// the program was started with a realtime policy, which stays. Call once,
// before there are threads.
OwnPriority ChooseOwnPriority(OwnPriority wanted);

// The calling thread's CPU time at that priority: so much at once, refilled at
// that rate. A thread that has used it up is scheduled as before until some of
// it is there again, so that a loop of ours can never hold a CPU.
struct PriorityAllowance {
  std::chrono::milliseconds at_once;
  std::chrono::milliseconds per_second;
};

// Gives the calling thread its own priority for as long as it lives, within the
// allowance. A timer of the thread's CPU time takes the priority back when the
// allowance is used up, wherever the thread is by then; its signal interrupts
// system calls that cannot be restarted. Nothing that the thread starts, thread
// or program, inherits the priority. One at a time in a thread, and to be used
// by that thread only. Where ChooseOwnPriority() was not called, or came to
// kNormal, or no timer can be had, does nothing.
class PriorityShare {
 public:
  explicit PriorityShare(PriorityAllowance allowance);
  ~PriorityShare();
  PriorityShare(const PriorityShare&) = delete;
  PriorityShare& operator=(const PriorityShare&) = delete;

  // Takes what has come to the allowance since, and raises the thread again if
  // it had been lowered. Call a few times a second. Cost: a clock reading; a
  // system call whenever half of the allowance's time has passed; three where
  // the thread was lowered, rested, or used half of the allowance.
  void Renew();
  // As the program was started, until the next Renew(): for work that can wait.
  void Rest();

 private:
  using Clock = std::chrono::steady_clock;
  void Raise();

  const PriorityAllowance allowance_;
  bool has_timer_ = false;
  bool rests_ = false;
  void* timer_ = nullptr;                     // timer_t
  std::chrono::nanoseconds left_;             // of the allowance
  std::chrono::nanoseconds timer_left_ = {};  // until the timer lowers
  Clock::time_point renewed_;
  std::chrono::nanoseconds used_before_ = {};  // CPU time as of then
};

// Schedules all threads of this process as ChooseOwnPriority() came to, without
// an allowance: for a process that is about to be killed, whose threads must
// each get a turn to end. Allocates nothing and takes no lock.
void RaiseAllThreads();

}  // namespace profd
