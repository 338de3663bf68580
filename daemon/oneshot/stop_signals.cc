// SPDX-License-Identifier: Apache-2.0
#include "daemon/oneshot/stop_signals.h"

#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>

#include <array>
#include <cerrno>
#include <utility>

namespace profd {
namespace {

constexpr std::array kStopping = {SIGINT, SIGTERM};

void Unblock() {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : kStopping) sigaddset(&set, signal);
  ::sigprocmask(SIG_UNBLOCK, &set, nullptr);
}

// A handler. From here on each signal has the effect that it had when the
// program began: one that was ignored has no handler.
void TakeFirst(int /*signal*/) {
  for (const int signal : kStopping) {
    struct sigaction action = {};
    ::sigaction(signal, nullptr, &action);
    if (action.sa_handler == &TakeFirst) ::signal(signal, SIG_DFL);
  }
}

}  // namespace

ksym::Result<StopSignals> StopSignals::Install() {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : {SIGINT, SIGTERM, SIGCHLD}) sigaddset(&set, signal);
  if (::sigprocmask(SIG_BLOCK, &set, nullptr) != 0) {
    return ksym::FailErrno(errno, "sigprocmask");
  }
  // A write to a closed pipe shall be an error of that write.
  ::signal(SIGPIPE, SIG_IGN);
  ksym::UniqueFd fd(::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!fd.valid()) return ksym::FailErrno(errno, "signalfd");
  return StopSignals(std::move(fd));
}

StopSignals::Event StopSignals::Wait(std::chrono::nanoseconds timeout) {
  const timespec limit = {.tv_sec = timeout.count() / 1'000'000'000,
                          .tv_nsec = timeout.count() % 1'000'000'000};
  pollfd entry = {.fd = fd_.get(), .events = POLLIN, .revents = 0};
  if (::ppoll(&entry, 1, &limit, nullptr) <= 0) return Event::kTimeout;
  Event event = Event::kTimeout;
  signalfd_siginfo info = {};
  while (::read(fd_.get(), &info, sizeof(info)) == sizeof(info)) {
    if (info.ssi_signo == SIGCHLD) {
      if (event == Event::kTimeout) event = Event::kChild;
      continue;
    }
    event = Event::kStop;
    had_first_ = true;
    Unblock();
  }
  return event;
}

void StopSignals::StopLooking() {
  for (const int signal : kStopping) {
    struct sigaction action = {};
    ::sigaction(signal, nullptr, &action);
    if (had_first_ || action.sa_handler != SIG_DFL) continue;
    action.sa_handler = &TakeFirst;
    action.sa_flags = SA_RESTART;
    ::sigaction(signal, &action, nullptr);
  }
  Unblock();
}

}  // namespace profd
