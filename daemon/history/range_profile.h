// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include "daemon/history/coverage.h"
#include "daemon/history/selection.h"
#include "daemon/history/tables.h"
#include "daemon/profile/profile.h"
#include "ksym/base/result.h"

namespace profd::history {

// Adds the wanted samples of files up to one profile. Files come in the order
// of their sequence numbers. Not thread-safe.
class RangeProfile {
 public:
  // `max_bytes` bounds the profile that is made.
  RangeProfile(Selection selection, size_t max_bytes)
      : selection_(std::move(selection)), max_bytes_(max_bytes) {}

  // kCorrupt, kUnsupported: the file contradicts itself, or has a word that is
  // not known; nothing was added. kLimit: the profile would be too large, and
  // nothing may be added any more. O(the file).
  ksym::Status Add(const Tables& tables);
  const RangeCoverage& coverage() const { return coverage_.coverage(); }
  // Its duration is that of the parts, without the holes. Where the rate of a
  // kind changed its samples have values: what they stood for.
  Profile Finish() &&;

 private:
  class File;

  void NotePlace(const Tables& tables, const Part& part);
  ksym::Result<SampleKindId> PlaceOf(const SampleKind& kind);

  const Selection selection_;
  const size_t max_bytes_;
  ProfileBuilder builder_;
  CaptureMetadata metadata_;  // its kinds are told apart by their rates
  bool has_kinds_ = false;    // of a part
  CoverageAdder coverage_;
};

}  // namespace profd::history
