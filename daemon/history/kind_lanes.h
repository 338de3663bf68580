// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "daemon/history/one_kind.h"
#include "daemon/history/selection.h"
#include "daemon/history/tables.h"

namespace profd::history {

// The kinds of samples of a time line, each a lane. Lane 0 is the kind that was
// asked for; others follow in the order in which files have them.
class KindLanes {
 public:
  // CPU, runnable and blocked, and one more.
  static constexpr size_t kMaxLanes = 4;

  // `most`: how many there may be, 1 to kMaxLanes. Samples of kinds beyond that
  // are of no lane.
  KindLanes(std::string kind, size_t most)
      : lanes_(1, OneKind(std::move(kind))), most_(most) {}

  // Before the rows of a file are asked for.
  void Enter(const Tables& tables, const FileFilter& filter);
  // The lane of a series of that file, if it has one.
  std::optional<size_t> LaneOf(const Series& series) const;
  // Whether a setting of that file samples the kind of a lane.
  bool IsSampled(const Tables& tables, const Setting& setting,
                 size_t lane) const;

  // Lane 0 is always there; its kind has no name before the first part.
  const std::vector<OneKind>& lanes() const { return lanes_; }

 private:
  void AddKindsOf(const Tables& tables, const Setting& setting);

  std::vector<OneKind> lanes_;
  size_t most_;
};

}  // namespace profd::history
