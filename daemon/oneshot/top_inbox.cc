// SPDX-License-Identifier: Apache-2.0
#include "daemon/oneshot/top_inbox.h"

#include <sys/eventfd.h>

#include <cerrno>

namespace profd {

ksym::Result<std::unique_ptr<TopInbox>> TopInbox::Make() {
  ksym::UniqueFd fd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!fd.valid()) return ksym::FailErrno(errno, "eventfd");
  return std::unique_ptr<TopInbox>(new TopInbox(std::move(fd)));
}

void TopInbox::Tell() { ::eventfd_write(fd_.get(), 1); }

TopInbox::News TopInbox::Take() {
  eventfd_t count = 0;
  ::eventfd_read(fd_.get(), &count);
  const std::lock_guard lock(mutex_);
  return std::exchange(news_, {});
}

}  // namespace profd
