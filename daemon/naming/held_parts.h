// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <deque>
#include <memory>

#include "daemon/profile/raw_profile.h"

namespace profd {

// Drained parts of a capture that wait for the kernel's table. Those of one
// profile are merged, as what waits together is named together. Not
// thread-safe.
class HeldParts {
 public:
  using Clock = std::chrono::steady_clock;
  struct Part {
    std::shared_ptr<RawProfile> raw;
    Clock::time_point taken;    // the last of them
    bool ends_profile = false;  // the next part is of another profile
    size_t drains = 1;          // that are in it
  };

  void Add(Part part);
  bool empty() const { return parts_.empty(); }
  // Of a list that is not empty.
  const Part& first() const { return parts_.front(); }
  Part TakeFirst();

 private:
  std::deque<Part> parts_;
};

}  // namespace profd
