// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "daemon/profile/profile.h"

namespace profd {

// Makes one profile of several that follow each other: counts of equal samples,
// whatever their slices, and the accounting are summed, warnings and kinds of
// samples united, and the time reaches from the beginning of the first over the
// durations of all. A kind of another rate is the same kind. Not thread-safe.
class ProfileMerger {
 public:
  // Keeps all kinds of samples.
  ProfileMerger() = default;
  // Keeps the kind of that name alone, with the frames and names of its
  // samples; empty: the first one. Others count neither as taken nor as
  // emitted; what was lost or damaged is not known by kind, and is that of all.
  explicit ProfileMerger(std::string only_kind)
      : only_kind_(std::move(only_kind)) {}

  // Cost: O(strings, frames, stacks and samples of `part`).
  void Add(const Profile& part);
  // 0: none was added.
  uint64_t duration_ns() const { return metadata_.duration_ns; }
  // Those of all parts, in the order in which they came first, whichever is
  // wanted.
  const std::vector<SampleKind>& kinds() const { return metadata_.kinds; }
  // About what it takes. O(1).
  size_t memory_bytes() const { return builder_.memory_bytes(); }
  // Nothing may be added after it.
  Profile Finish() &&;

 private:
  void AddMetadata(const CaptureMetadata& metadata);
  std::vector<SampleKindId> AddKinds(const std::vector<SampleKind>& kinds);
  bool IsWanted(const SampleKind& kind) const;

  ProfileBuilder builder_;
  std::optional<std::string> only_kind_;  // empty: all are wanted
  CaptureMetadata metadata_;
  bool empty_ = true;
  uint64_t symbol_tables_evicted_ = 0;
  ThreadSums thread_sums_;
};

}  // namespace profd
