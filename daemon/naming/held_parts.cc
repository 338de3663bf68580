// SPDX-License-Identifier: Apache-2.0
#include "daemon/naming/held_parts.h"

#include <utility>

#include "daemon/profile/raw_profile_merge.h"

namespace profd {

HeldParts::Clock::time_point HeldParts::taken() const {
  return parts_[joined_].taken;
}

void HeldParts::JoinToFirst() {
  // Never across the end of a profile, or samples would be in the wrong one.
  while (joined_ + 1 < parts_.size() && !parts_[joined_].ends_profile) {
    ++joined_;
  }
}

// Merged only now: each part once, however often the first one was put off.
HeldParts::Part HeldParts::TakeFirst() {
  Part part = std::move(parts_.front());
  parts_.pop_front();
  for (; joined_ > 0; --joined_) {
    Part& next = parts_.front();
    Merge(*part.raw, std::move(*next.raw));
    part.taken = next.taken;
    part.ends_profile = next.ends_profile;
    parts_.pop_front();
  }
  return part;
}

}  // namespace profd
