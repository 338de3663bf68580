// SPDX-License-Identifier: Apache-2.0
#include "daemon/naming/held_parts.h"

#include <utility>

#include "daemon/profile/raw_profile_merge.h"

namespace profd {

void HeldParts::Add(Part part) {
  if (parts_.empty() || parts_.back().ends_profile) {
    parts_.push_back(std::move(part));
    return;
  }
  Part& last = parts_.back();
  Merge(*last.raw, std::move(*part.raw));
  last.taken = part.taken;
  last.ends_profile = part.ends_profile;
  last.drains += part.drains;
}

HeldParts::Part HeldParts::TakeFirst() {
  Part part = std::move(parts_.front());
  parts_.pop_front();
  return part;
}

}  // namespace profd
