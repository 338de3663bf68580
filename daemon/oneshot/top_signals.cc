// SPDX-License-Identifier: Apache-2.0
#include "daemon/oneshot/top_signals.h"

#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <utility>

#include "daemon/base/event_fds.h"

namespace profd {
namespace {

constexpr std::array kTopSignals = {SIGINT,  SIGTERM,  SIGQUIT, SIGHUP,
                                    SIGTSTP, SIGWINCH, SIGCONT};

}  // namespace

ksym::Result<TopSignals> TopSignals::Install() {
  sigset_t set;
  sigemptyset(&set);
  for (const int number : kTopSignals) {
    struct sigaction action = {};
    ::sigaction(number, nullptr, &action);
    // Shells have SIGINT ignored in what they start in the background.
    const bool always = number == SIGINT || number == SIGTERM;
    if (always || action.sa_handler != SIG_IGN) sigaddset(&set, number);
  }
  // A write to a closed pipe shall be an error of that write.
  ::signal(SIGPIPE, SIG_IGN);
  if (::sigprocmask(SIG_BLOCK, &set, nullptr) != 0) {
    return ksym::FailErrno(errno, "sigprocmask");
  }
  auto fd = MakeSignalFd(set);
  if (!fd) return ksym::Fail(fd.error());
  return TopSignals(std::move(*fd));
}

TopSignals::Came TopSignals::Take() {
  Came came;
  signalfd_siginfo info = {};
  while (::read(fd_.get(), &info, sizeof(info)) == sizeof(info)) {
    switch (static_cast<int>(info.ssi_signo)) {
      case SIGWINCH:
        came.resizes = true;
        break;
      case SIGTSTP:
        came.stops = true;
        break;
      case SIGCONT:
        came.goes_on = true;
        break;
      default:
        came.ends = true;
    }
  }
  return came;
}

}  // namespace profd
