// SPDX-License-Identifier: Apache-2.0
#include "daemon/history/columns.h"

#include <algorithm>
#include <iterator>

#include "daemon/history/column_fields.h"
#include "daemon/history/column_writer.h"

namespace profd::history {

bool HasColumn(Content content, size_t column) {
  if (content == Content::kAll) return true;
  if (content == Content::kFlames) {
    return column < kFirstNodeColumn ||
           (column >= kFirstKindColumn && column < kCountersOfParts) ||
           (column >= kFirstThinningColumn && column < kSliceColumn);
  }
  return (column < kFirstFunctionColumn || column >= kFirstKindColumn) &&
         std::ranges::find(kStacksOfRows, column) == std::end(kStacksOfRows);
}

Columns EncodeColumns(Tables& tables, const Sizes& from) {
  std::sort(tables.rows.begin() + static_cast<ptrdiff_t>(from.rows),
            tables.rows.end(), RowOrder);
  Columns columns;
  ColumnWriter writer(columns);
  writer.AddStrings(tables.strings, from.strings);
  writer.Add(tables.functions, from.functions, kFunctionFields);
  writer.Add(tables.nodes, from.nodes, kNodeFields);
  writer.Add(tables.kinds, from.kinds, kKindFields);
  writer.Add(tables.settings, from.settings, kSettingFields);
  writer.Add(tables.parts, from.parts, kPartFields);
  writer.Add(tables.counters, from.counters, kCounterFields);
  writer.Add(tables.series, from.series, kSeriesFields);
  writer.Add(tables.rows, from.rows, kRowFields);
  writer.Add(tables.cgroup_names, from.cgroup_names, kCgroupNameFields);
  writer.Add(tables.thinnings, from.thinnings, kThinningFields);
  writer.AddUnlessZero(tables.rows, from.rows, kSliceField);
  return columns;
}

Sizes MostElements(const std::array<size_t, kColumns>& column_bytes) {
  size_t next = kTextColumn + 1;
  const auto least = [&](const auto& fields) {
    size_t bytes = column_bytes[next];
    next = ForEachField(fields, next, [&](const auto&, size_t column) {
      bytes = std::min(bytes, column_bytes[column]);
    });
    return bytes;
  };
  // String 0 and node 0 are in no column. In braces calls go from left to
  // right.
  return {.strings = column_bytes[0] + 1,
          .functions = least(kFunctionFields),
          .nodes = least(kNodeFields) + 1,
          .kinds = least(kKindFields),
          .settings = least(kSettingFields),
          .parts = least(kPartFields),
          .counters = least(kCounterFields),
          .series = least(kSeriesFields),
          .rows = least(kRowFields),
          .cgroup_names = least(kCgroupNameFields),
          .thinnings = least(kThinningFields)};
}

}  // namespace profd::history
