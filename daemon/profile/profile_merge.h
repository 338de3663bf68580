// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "daemon/profile/profile.h"

namespace profd {

// Makes one profile of several that follow each other: counts of equal samples
// and the accounting are summed, warnings united, and the time reaches from the
// beginning of the first over the durations of all. Not thread-safe.
class ProfileMerger {
 public:
  // Cost: O(strings, frames, stacks and samples of `part`).
  void Add(const Profile& part);
  // 0: none was added.
  uint64_t duration_ns() const { return metadata_.duration_ns; }
  // About what it takes. O(1).
  size_t memory_bytes() const { return builder_.memory_bytes(); }
  // Nothing may be added after it.
  Profile Finish() &&;

 private:
  void AddSamples(const Profile& part, const std::vector<StringId>& strings);
  void AddMetadata(const CaptureMetadata& metadata);

  ProfileBuilder builder_;
  CaptureMetadata metadata_;
  bool empty_ = true;
  uint64_t symbol_tables_evicted_ = 0;
};

}  // namespace profd
