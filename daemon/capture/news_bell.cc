// SPDX-License-Identifier: Apache-2.0
#include "daemon/capture/news_bell.h"

#include <sys/epoll.h>

#include <cerrno>
#include <utility>

#include "daemon/capture/bpf_object.h"

namespace profd {

using ksym::Fail;
using ksym::FailErrno;

ksym::Result<NewsBell> NewsBell::Open(BpfObject& object) {
  const int ring = object.ring_fd();
  if (ring < 0) {
    return Fail(ksym::ErrorCode::kUnsupported, "there is no ring buffer");
  }
  ksym::UniqueFd epoll(::epoll_create1(EPOLL_CLOEXEC));
  if (!epoll.valid()) return FailErrno(errno, "epoll_create1");
  epoll_event event = {};
  // By edge: only a wake-up puts the ring on epoll's list, and not what is in
  // it (epoll(7)).
  event.events = EPOLLIN | EPOLLET;
  if (::epoll_ctl(epoll.get(), EPOLL_CTL_ADD, ring, &event) != 0) {
    return FailErrno(errno, "waiting for a ring buffer");
  }
  return NewsBell(object, std::move(epoll));
}

void NewsBell::BeginPoll() {
  if (object_ == nullptr) return;
  const uint64_t news = object_->news();
  had_news_ = std::exchange(news_, news) != news;
}

void NewsBell::EndPoll() {
  is_quiet_ = false;
  // A bell that nobody waits for would only cost its interrupt.
  if (object_ == nullptr || had_news_) return;
  epoll_event event = {};
  ::epoll_wait(epoll_.get(), &event, 1, 0);
  object_->WantBell();
  // The bell rings for what comes from here on. Something that came before, and
  // was perhaps not read, is news now.
  is_quiet_ = object_->news() == news_;
}

}  // namespace profd
