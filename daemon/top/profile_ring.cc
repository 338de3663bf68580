// SPDX-License-Identifier: Apache-2.0
#include "daemon/top/profile_ring.h"

#include <algorithm>
#include <utility>

#include "daemon/profile/parked.h"
#include "daemon/profile/profile_merge.h"
#include "daemon/top/top_rows.h"

namespace profd {

void ProfileRing::Add(Part part) {
  const size_t bytes = part->memory_bytes();
  bytes_ += bytes;
  duration_ns_ += part->metadata.duration_ns;
  entries_.push_back({.part = std::move(part), .bytes = bytes});
  while (entries_.size() > 1 &&
         (bytes_ > kMaxBytes || duration_ns_ > kMaxSeconds * 1'000'000'000)) {
    bytes_ -= entries_.front().bytes;
    duration_ns_ -= entries_.front().part->metadata.duration_ns;
    entries_.pop_front();
  }
}

std::vector<ProfileRing::Part> ProfileRing::Last(uint64_t duration_ns) const {
  std::vector<Part> parts;
  uint64_t sum = 0;
  for (size_t i = entries_.size(); i > 0; --i) {
    const Part& part = entries_[i - 1].part;
    const uint64_t own = part->metadata.duration_ns;
    // A part is in when more than half of it is.
    if (!parts.empty() && sum + own / 2 > duration_ns) break;
    sum += own;
    parts.push_back(part);
  }
  std::ranges::reverse(parts);
  return parts;
}

Profile ProfileOfWindow(const std::vector<ProfileRing::Part>& parts) {
  ProfileMerger merger;
  for (const ProfileRing::Part& part : parts) merger.Add(*part);
  Profile profile = std::move(merger).Finish();
  MarkParked(LivesInSamples(profile), profile);
  return profile;
}

}  // namespace profd
