// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <deque>
#include <memory>
#include <utility>

#include "daemon/profile/raw_profile.h"

namespace profd {

// Drained parts of a capture that wait for the kernel's table. Each is named by
// itself, with the kernel's symbols of its own time, unless the table that they
// need is put off: then all that waited for it are named as one. Not
// thread-safe.
class HeldParts {
 public:
  using Clock = std::chrono::steady_clock;
  struct Part {
    std::shared_ptr<RawProfile> raw;
    Clock::time_point taken;
    bool ends_profile = false;  // the next part is of another profile
  };

  void Add(Part part) { parts_.push_back(std::move(part)); }
  bool empty() const { return parts_.empty(); }
  size_t size() const { return parts_.size(); }

  // The part that decides whether the first one is put off. There is one.
  const RawProfile& first() const { return *parts_.front().raw; }
  // When the last of those was drained that TakeFirst() would give.
  Clock::time_point taken() const;

  // The first one is put off. Those behind it, up to the end of its profile,
  // need the same reading of the table: TakeFirst() will give them with it.
  // O(parts); nothing is merged yet.
  void JoinToFirst();
  // The first one, with those that were joined to it; each is merged once. It
  // was taken when the last of them was.
  Part TakeFirst();

 private:
  std::deque<Part> parts_;
  size_t joined_ = 0;  // to the first one, behind it
};

}  // namespace profd
