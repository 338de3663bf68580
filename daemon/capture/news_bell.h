// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <utility>

#include "ksym/base/result.h"
#include "ksym/base/unique_fd.h"

namespace profd {

class BpfObject;

// Whether news come (BpfObject::news()), and a bell that rings for the next
// ones: only when a program wakes the ring's reader, as a ring is readable as
// long as there is anything in it (ringbuf_map_poll_kern() in the kernel). Not
// thread-safe.
class NewsBell {
 public:
  // Without a bell, and so never quiet.
  NewsBell() = default;
  // The object lives longer than the bell. kUnsupported: it has no ring.
  static ksym::Result<NewsBell> Open(BpfObject& object);

  // Before and after all that is there is read. What comes in between counts
  // for the next time, also if it was read.
  void BeginPoll();
  void EndPoll();
  // As of the last poll: nothing came since the one before, and the bell rings
  // when something does.
  bool IsQuiet() const { return is_quiet_; }
  // For poll(2): readable once it has rung, until the next poll; -1: there is
  // no bell.
  int fd() const { return epoll_.get(); }

 private:
  NewsBell(BpfObject& object, ksym::UniqueFd epoll)
      : object_(&object), epoll_(std::move(epoll)) {}

  BpfObject* object_ = nullptr;
  ksym::UniqueFd epoll_;
  uint64_t news_ = 0;  // as of the last poll
  bool had_news_ = false;
  bool is_quiet_ = false;
};

}  // namespace profd
