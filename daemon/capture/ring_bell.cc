// SPDX-License-Identifier: Apache-2.0
#include "daemon/capture/ring_bell.h"

#include <sys/epoll.h>

#include <cerrno>

namespace profd {

using ksym::FailErrno;

ksym::Result<RingBell> RingBell::Open(int ring_fd) {
  ksym::UniqueFd epoll(::epoll_create1(EPOLL_CLOEXEC));
  if (!epoll.valid()) return FailErrno(errno, "epoll_create1");
  epoll_event event = {};
  // By edge: only a wake-up puts the ring on epoll's list, and not what is in
  // it (epoll(7)).
  event.events = EPOLLIN | EPOLLET;
  if (::epoll_ctl(epoll.get(), EPOLL_CTL_ADD, ring_fd, &event) != 0) {
    return FailErrno(errno, "waiting for a ring buffer");
  }
  return RingBell(std::move(epoll));
}

void RingBell::Silence() {
  epoll_event event = {};
  ::epoll_wait(epoll_.get(), &event, 1, 0);
}

}  // namespace profd
