// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <expected>
#include <string>
#include <utility>
#include <vector>

#include "daemon/history/layout.h"
#include "daemon/history/tables.h"
#include "ksym/base/result.h"

namespace profd::history {

// A new file takes the place of others. It is read again before that: nothing
// is removed for bytes that nobody could read, or that say less than they
// should.

// The beginning of a segment.
ksym::Result<SegmentOutline> ReadOutline(const std::string& directory,
                                         const FileName& name);
// A file that CheckTables() has found right.
ksym::Result<Tables> ReadWhole(const std::string& directory,
                               const FileName& name);

// Sums that stay as they are whatever becomes of the stacks.
struct TableSums {
  explicit TableSums(const Tables& tables);
  bool operator==(const TableSums&) const = default;

  // How many samples, and what they stand for.
  using CountAndValue = std::pair<uint64_t, uint64_t>;

  size_t counters = 0;
  std::vector<CountAndValue> parts;
  std::vector<CountAndValue> kinds;
};

// The tables as the segment of that name, which was read again and has all of
// it. Memory: that of the columns, or of the tables once more.
ksym::Result<std::string> EncodeReplacement(const FileName& name,
                                            Tables tables);

// The error where something ends early, as others wait for the thread.
std::unexpected<ksym::Error> GaveWay();

}  // namespace profd::history
