// SPDX-License-Identifier: Apache-2.0
#include "daemon/base/event_fds.h"

#include <sys/eventfd.h>
#include <sys/signalfd.h>

#include <cerrno>

namespace profd {

ksym::Result<ksym::UniqueFd> MakeEventFd() {
  ksym::UniqueFd fd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!fd.valid()) return ksym::FailErrno(errno, "eventfd");
  return fd;
}

ksym::Result<ksym::UniqueFd> MakeSignalFd(const sigset_t& signals) {
  ksym::UniqueFd fd(::signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!fd.valid()) return ksym::FailErrno(errno, "signalfd");
  return fd;
}

}  // namespace profd
