// SPDX-License-Identifier: Apache-2.0
#include "daemon/base/own_priority.h"

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstring>
#include <string_view>
#include <utility>

namespace profd {
namespace {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;

constexpr int kHighestNice = -20;
// Less than that is not worth two system calls.
constexpr milliseconds kMinAllowance(10);
// A thread that lost its priority is looked at no more often.
constexpr milliseconds kRenewPeriod(100);

constexpr std::array<std::pair<OwnPriority, std::string_view>, 4> kNames = {
    {{OwnPriority::kAuto, "auto"},
     {OwnPriority::kRealtime, "realtime"},
     {OwnPriority::kNice, "nice"},
     {OwnPriority::kNormal, "normal"}}};

// As of ChooseOwnPriority(), for all threads; written before there are others.
OwnPriority chosen = OwnPriority::kNormal;
// How the program was started.
int first_policy = SCHED_OTHER;
int first_nice = 0;
// Whether the timer took this thread's priority since it was last raised.
thread_local volatile std::sig_atomic_t was_lowered = 0;

// One that nobody else uses, and that has no other effect.
int LoweringSignal() { return SIGRTMIN + 7; }

// One thread alone, 0: the calling one. A policy, and in Linux a nice value,
// too, is each thread's.
bool SetPolicy(int policy, pid_t thread = 0) {
  sched_param parameters = {};
  parameters.sched_priority = policy == SCHED_FIFO ? 1 : 0;
  return ::sched_setscheduler(thread, policy | SCHED_RESET_ON_FORK,
                              &parameters) == 0;
}

bool ScheduleAs(OwnPriority priority, pid_t thread = 0) {
  if (priority == OwnPriority::kRealtime) return SetPolicy(SCHED_FIFO, thread);
  return SetPolicy(first_policy, thread) &&
         ::setpriority(PRIO_PROCESS, static_cast<id_t>(thread), kHighestNice) ==
             0;
}

void ScheduleAsAtFirst() {
  SetPolicy(first_policy);
  if (chosen == OwnPriority::kNice) ::setpriority(PRIO_PROCESS, 0, first_nice);
}

// In the thread whose allowance is used up. Two system calls are all that it
// does, so it may come at any point.
void Lower(int) {
  const int error = errno;
  ScheduleAsAtFirst();
  was_lowered = 1;
  errno = error;
}

nanoseconds ThreadCpuTime() {
  timespec now = {};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return std::chrono::seconds(now.tv_sec) + nanoseconds(now.tv_nsec);
}

bool InstallLowering() {
  struct sigaction action = {};
  action.sa_handler = Lower;
  action.sa_flags = SA_RESTART;
  return ::sigaction(LoweringSignal(), &action, nullptr) == 0;
}

}  // namespace

std::string_view OwnPriorityName(OwnPriority priority) {
  return std::ranges::find(kNames, priority,
                           &std::pair<OwnPriority, std::string_view>::first)
      ->second;
}

std::optional<OwnPriority> ParseOwnPriority(std::string_view name) {
  const auto* const found = std::ranges::find(
      kNames, name, &std::pair<OwnPriority, std::string_view>::second);
  if (found == kNames.end()) return std::nullopt;
  return found->first;
}

OwnPriority ChooseOwnPriority(OwnPriority wanted) {
  chosen = OwnPriority::kNormal;
  first_policy = ::sched_getscheduler(0) & ~SCHED_RESET_ON_FORK;
  first_nice = ::getpriority(PRIO_PROCESS, 0);
  const bool is_realtime = first_policy == SCHED_FIFO ||
                           first_policy == SCHED_RR ||
                           first_policy == SCHED_DEADLINE;
  if (wanted == OwnPriority::kNormal || is_realtime || !InstallLowering()) {
    return chosen;
  }
  for (const auto priority : {OwnPriority::kRealtime, OwnPriority::kNice}) {
    if (wanted != OwnPriority::kAuto && wanted != priority) continue;
    if (!ScheduleAs(priority)) continue;
    chosen = priority;
    ScheduleAsAtFirst();
    break;
  }
  return chosen;
}

PriorityShare::PriorityShare(PriorityAllowance allowance)
    : allowance_(allowance), left_(allowance.at_once) {
  if (chosen == OwnPriority::kNormal) return;
  sigevent event = {};
  event.sigev_notify = SIGEV_THREAD_ID;
  event.sigev_signo = LoweringSignal();
  event._sigev_un._tid = static_cast<pid_t>(::syscall(SYS_gettid));
  timer_t timer = nullptr;
  if (::timer_create(CLOCK_THREAD_CPUTIME_ID, &event, &timer) != 0) return;
  timer_ = timer;
  has_timer_ = true;
  sigset_t lowering;
  ::sigemptyset(&lowering);
  ::sigaddset(&lowering, LoweringSignal());
  ::pthread_sigmask(SIG_UNBLOCK, &lowering, nullptr);
  renewed_ = Clock::now();
  used_before_ = ThreadCpuTime();
  Raise();
}

PriorityShare::~PriorityShare() {
  if (!has_timer_) return;
  ::timer_delete(timer_);
  ScheduleAsAtFirst();
}

void PriorityShare::Renew() {
  if (!has_timer_) return;
  const auto now = Clock::now();
  const auto passed = now - renewed_;
  const bool is_raised = !rests_ && was_lowered == 0;
  // A thread cannot use more CPU time than passes: the timer needs no look
  // before that could be half of what it was set to.
  if (passed < (is_raised ? timer_left_ / 2 : kRenewPeriod) && !rests_) return;
  const nanoseconds used = ThreadCpuTime() - used_before_;
  // Nobody saves up for longer than it takes to fill.
  const auto refilled = nanoseconds(
      std::min<nanoseconds>(passed, std::chrono::minutes(1)).count() / 1000 *
      allowance_.per_second.count());
  left_ = std::min<nanoseconds>(left_ + refilled - used, allowance_.at_once);
  timer_left_ -= used;
  renewed_ = now;
  used_before_ += used;
  // The timer is set to no more than is left, and what is left only grows
  // beside it: a thread that uses little keeps both as they are.
  if (is_raised && timer_left_ > allowance_.at_once / 2) return;
  rests_ = false;
  if (left_ >= kMinAllowance) Raise();
}

// Renew() also counts the time that is used meanwhile: a rest never adds to the
// allowance.
void PriorityShare::Rest() {
  if (!has_timer_ || std::exchange(rests_, true)) return;
  ScheduleAsAtFirst();
}

// The timer first: without it nothing would take the priority back.
void PriorityShare::Raise() {
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(left_);
  itimerspec until = {};
  until.it_value.tv_sec = seconds.count();
  until.it_value.tv_nsec = (left_ - seconds).count();
  if (::timer_settime(timer_, 0, &until, nullptr) != 0) return;
  timer_left_ = left_;
  // A signal of the time before comes before timer_settime() is back.
  was_lowered = 0;
  ScheduleAs(chosen);
}

// readdir() would allocate.
void RaiseAllThreads() {
  if (chosen == OwnPriority::kNormal) return;
  const int directory = ::open("/proc/self/task", O_RDONLY | O_CLOEXEC);
  alignas(dirent64) std::array<char, 4096> entries;
  while (true) {
    const long bytes =
        ::syscall(SYS_getdents64, directory, entries.data(), entries.size());
    if (bytes <= 0) break;
    for (long at = 0; at < bytes;) {
      const auto* entry =
          reinterpret_cast<const dirent64*>(entries.data() + at);
      const std::string_view name = static_cast<const char*>(entry->d_name);
      pid_t thread = 0;
      std::from_chars(name.data(), name.data() + name.size(), thread);
      if (thread != 0) ScheduleAs(chosen, thread);
      at += entry->d_reclen;
    }
  }
  ::close(directory);
}

}  // namespace profd
