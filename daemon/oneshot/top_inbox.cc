// SPDX-License-Identifier: Apache-2.0
#include "daemon/oneshot/top_inbox.h"

#include <sys/eventfd.h>

#include <utility>

#include "daemon/base/event_fds.h"

namespace profd {

ksym::Result<std::unique_ptr<TopInbox>> TopInbox::Make() {
  auto fd = MakeEventFd();
  if (!fd) return ksym::Fail(fd.error());
  return std::unique_ptr<TopInbox>(new TopInbox(std::move(*fd)));
}

void TopInbox::Tell() { ::eventfd_write(fd_.get(), 1); }

TopInbox::News TopInbox::Take() {
  eventfd_t count = 0;
  // Before the news are taken: those that come in between are told of once
  // more.
  ::eventfd_read(fd_.get(), &count);
  const std::lock_guard lock(mutex_);
  return std::exchange(news_, {});
}

}  // namespace profd
