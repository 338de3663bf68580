// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>

#include "ksym/base/result.h"
#include "ksym/base/unique_fd.h"

namespace profd {

// Rings when a BPF program sends a record with BPF_RB_FORCE_WAKEUP, and for no
// other: a ring buffer itself is readable as long as there is anything in it
// (ringbuf_map_poll_kern() in the kernel). Not thread-safe.
class RingBell {
 public:
  // Of that map, whose descriptor may be closed afterwards.
  static ksym::Result<RingBell> Open(int ring_fd);

  // For poll(2): readable from when it rings until Silence().
  int fd() const { return epoll_.get(); }
  void Silence();

 private:
  explicit RingBell(ksym::UniqueFd epoll) : epoll_(std::move(epoll)) {}

  ksym::UniqueFd epoll_;
};

}  // namespace profd
