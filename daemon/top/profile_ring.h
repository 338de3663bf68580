// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "daemon/profile/profile.h"

namespace profd {

// The last parts of a capture that does not end, within a time and a number of
// bytes: the oldest ones make room. Not thread-safe; parts are shared and do
// not change.
class ProfileRing {
 public:
  using Part = std::shared_ptr<const Profile>;
  static constexpr uint64_t kMaxSeconds = 300;
  static constexpr size_t kMaxBytes = size_t{64} << 20;

  // The newest one stays however large it is.
  void Add(Part part);
  // The newest parts that together last so long, or all there are; oldest
  // first. Half a part more is taken rather than half a part less.
  std::vector<Part> Last(uint64_t duration_ns) const;
  size_t bytes() const { return bytes_; }

 private:
  struct Entry {
    Part part;
    size_t bytes = 0;
  };

  std::deque<Entry> entries_;
  size_t bytes_ = 0;
  uint64_t duration_ns_ = 0;
};

// One profile of the parts of a window, in which parked threads are marked.
// Cost: goes over every stack.
Profile ProfileOfWindow(const std::vector<ProfileRing::Part>& parts);

}  // namespace profd
