// SPDX-License-Identifier: Apache-2.0
#include "daemon/history/tables.h"

#include <algorithm>
#include <tuple>

#include "ksym/base/byte_reader.h"

namespace profd::history {

Sizes Tables::sizes() const {
  return {.strings = strings.size(),
          .functions = functions.size(),
          .nodes = nodes.size(),
          .kinds = kinds.size(),
          .settings = settings.size(),
          .parts = parts.size(),
          .counters = counters.size(),
          .series = series.size(),
          .rows = rows.size(),
          .cgroup_names = cgroup_names.size(),
          .thinnings = thinnings.size()};
}

void Tables::Clear() {
  strings = {};
  functions.clear();
  nodes.assign(1, Node{});
  kinds.clear();
  settings.clear();
  parts.clear();
  counters.clear();
  series.clear();
  rows.clear();
  cgroup_names.clear();
  thinnings.clear();
  text_bytes = 0;
  count_sum = 0;
  value_sum = 0;
}

size_t Tables::memory_bytes() const {
  return strings.memory_bytes() + functions.capacity() * sizeof(Function) +
         nodes.capacity() * sizeof(Node) + kinds.capacity() * sizeof(Kind) +
         settings.capacity() * sizeof(Setting) +
         parts.capacity() * sizeof(Part) +
         counters.capacity() * sizeof(Counter) +
         series.capacity() * sizeof(Series) + rows.capacity() * sizeof(Row) +
         cgroup_names.capacity() * sizeof(CgroupName);
}

uint16_t RowSliceOf(uint64_t start_unix_ns, TimeSlice slice) {
  if (slice == kNoSlice) return 0;
  // At the most kDifferentSlices, which is the largest number that there is.
  return static_cast<uint16_t>(SlicesAfter(start_unix_ns / kSliceNs, slice) +
                               1);
}

uint64_t BeginOf(const Part& part, const Row& row) {
  if (row.slice == 0) return part.start_unix_ns;
  const uint64_t first = part.start_unix_ns / kSliceNs * kSliceNs;
  return ksym::CheckedAdd(first, (row.slice - uint64_t{1}) * kSliceNs)
      .value_or(first);
}

bool RowOrder(const Row& a, const Row& b) {
  return std::tie(a.series, a.user, a.kernel, a.part, a.slice) <
         std::tie(b.series, b.user, b.kernel, b.part, b.slice);
}

void UniteRows(std::vector<Row>& rows) {
  std::ranges::sort(rows, RowOrder);
  size_t kept = 0;
  for (size_t at = 1; at < rows.size(); ++at) {
    // What comes later in order is different.
    if (RowOrder(rows[kept], rows[at])) {
      rows[++kept] = rows[at];
    } else {
      rows[kept].count += rows[at].count;
      rows[kept].value += rows[at].value;
    }
  }
  if (!rows.empty()) rows.resize(kept + 1);
}

}  // namespace profd::history
