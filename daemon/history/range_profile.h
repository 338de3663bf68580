// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "daemon/history/tables.h"
#include "daemon/profile/profile.h"
#include "ksym/base/result.h"

namespace profd::history {

// Which samples of a history are wanted; an empty text asks for nothing.
struct Selection {
  // Parts that begin in [from, until), in nanoseconds since 1970.
  uint64_t from_unix_ns = 0;
  uint64_t until_unix_ns = std::numeric_limits<uint64_t>::max();
  std::string unit = {};       // "nginx.service", or "nginx" for that
  std::string container = {};  // the beginning of its id
  std::string command = {};    // the whole name of a thread
  std::string kind = {};       // SampleKind::name
  // Stacks with a function whose name has this in it.
  std::string function = {};
  std::optional<uint32_t> pid = {};
};

// What the parts of a range tell of themselves.
struct RangeCoverage {
  // Time between parts of which nothing is known.
  struct Hole {
    uint64_t from_unix_ns = 0;
    uint64_t until_unix_ns = 0;
    bool is_restart = false;  // another run of the service begins behind it
  };

  uint64_t parts = 0;
  uint64_t restarts = 0;
  uint64_t set_back = 0;  // times that the clock went back
  uint64_t holes = 0;
  uint64_t hole_ns = 0;           // of all of them
  std::vector<Hole> first_holes;  // at most kMaxHolesListed

  static constexpr size_t kMaxHolesListed = 10;
};

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
  const RangeCoverage& coverage() const { return coverage_; }
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
  RangeCoverage coverage_;
  uint64_t last_end_unix_ns_ = 0;
  std::string last_run_;
};

}  // namespace profd::history
