// SPDX-License-Identifier: Apache-2.0
#include "daemon/service/service_signals.h"

#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>

#include <array>
#include <cerrno>
#include <utility>

#include "daemon/base/event_fds.h"

namespace profd {

ksym::Result<ServiceSignals> ServiceSignals::Install() {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : {SIGTERM, SIGINT, SIGHUP, SIGUSR1}) {
    sigaddset(&set, signal);
  }
  if (::sigprocmask(SIG_BLOCK, &set, nullptr) != 0) {
    return ksym::FailErrno(errno, "sigprocmask");
  }
  // A write to a closed socket shall be an error of that write.
  ::signal(SIGPIPE, SIG_IGN);
  auto fd = MakeSignalFd(set);
  if (!fd) return ksym::Fail(fd.error());
  return ServiceSignals(std::move(*fd));
}

ServiceSignals::Asked ServiceSignals::Wait(std::chrono::nanoseconds timeout,
                                           int bell) const {
  const timespec limit = {.tv_sec = timeout.count() / 1'000'000'000,
                          .tv_nsec = timeout.count() % 1'000'000'000};
  std::array<pollfd, 2> entries = {
      pollfd{.fd = fd_.get(), .events = POLLIN, .revents = 0},
      pollfd{.fd = bell, .events = POLLIN, .revents = 0}};
  Asked asked;
  // Interrupted is as good as late: the caller does what is due and waits
  // again.
  if (::ppoll(entries.data(), entries.size(), &limit, nullptr) <= 0) {
    return asked;
  }
  signalfd_siginfo info = {};
  // All that came is taken at once, so that a reload and a stop together are a
  // stop. The descriptor does not block.
  while (::read(fd_.get(), &info, sizeof(info)) == sizeof(info)) {
    if (info.ssi_signo == SIGHUP) {
      asked.reload = true;
    } else if (info.ssi_signo == SIGUSR1) {
      asked.write_now = true;
    } else {
      asked.stop = true;
    }
  }
  return asked;
}

}  // namespace profd
