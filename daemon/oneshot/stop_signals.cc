#include "daemon/oneshot/stop_signals.h"

#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>

#include <cerrno>
#include <utility>

namespace profd {

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
    Release();
  }
  return event;
}

void StopSignals::Release() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGINT);
  sigaddset(&set, SIGTERM);
  ::sigprocmask(SIG_UNBLOCK, &set, nullptr);
}

}  // namespace profd
