// SPDX-License-Identifier: Apache-2.0
#include "daemon/history/replacement.h"

#include <optional>
#include <string_view>
#include <utility>

#include "daemon/history/history_directory.h"
#include "daemon/history/summary.h"
#include "daemon/history/table_check.h"

namespace profd::history {

using ksym::ErrorCode;
using ksym::Fail;
using ksym::Result;

namespace {

// Whether the flames that it has are of all samples.
ksym::Status CheckFlamesOf(const FileName& name, std::string_view bytes,
                           uint64_t samples) {
  const auto file = DecodeFile(name, bytes, Content::kFlames);
  if (!file) return Fail(file.error());
  const std::optional<StoredFlames>& flames = file->flames;
  if (!flames) return {};
  uint64_t count = 0;
  for (const StoredNode& node : flames->nodes) count += node.count;
  if (count == samples) return {};
  return Fail(ErrorCode::kCorrupt, "its flames are not those of its rows");
}

}  // namespace

Result<SegmentOutline> ReadOutline(const std::string& directory,
                                   const FileName& name) {
  const auto beginning = ReadBeginning(directory, name, kSegmentHeaderBytes);
  if (!beginning) return Fail(beginning.error());
  return ReadSegmentOutline(*beginning);
}

Result<Tables> ReadWhole(const std::string& directory, const FileName& name) {
  const auto bytes = ReadHistoryFile(directory, name);
  if (!bytes) return Fail(bytes.error());
  auto file = DecodeFile(name, *bytes);
  if (!file) return Fail(std::move(file.error()));
  if (auto right = CheckTables(file->tables); !right) {
    return Fail(std::move(right.error()));
  }
  return std::move(file->tables);
}

TableSums::TableSums(const Tables& tables)
    : counters(tables.counters.size()),
      parts(tables.parts.size()),
      kinds(tables.kinds.size()) {
  // All of them together stay below 2^64.
  const auto add = [](const Row& row, CountAndValue& sum) {
    sum.first += row.count;
    sum.second += row.value;
  };
  for (const Row& row : tables.rows) {
    add(row, parts[row.part]);
    add(row, kinds[tables.series[row.series].kind]);
  }
}

Result<std::string> EncodeReplacement(const FileName& name, Tables tables) {
  auto bytes = EncodeSummarized(tables, name.sequences);
  if (!bytes) return bytes;
  const Sizes sizes = tables.sizes();
  const TableSums sums(tables);
  const uint64_t samples = tables.count_sum;
  // There is not room for both.
  tables = Tables();
  if (auto right = CheckFlamesOf(name, *bytes, samples); !right) {
    return Fail(std::move(right.error()));
  }
  const auto file = DecodeFile(name, *bytes);
  if (!file) return Fail(file.error());
  if (auto right = CheckTables(file->tables); !right) {
    return Fail(std::move(right.error()));
  }
  if (file->tables.sizes() != sizes || TableSums(file->tables) != sums) {
    return Fail(ErrorCode::kCorrupt, "it is not what it was made of");
  }
  return bytes;
}

std::unexpected<ksym::Error> GaveWay() {
  return Fail(ErrorCode::kLimit, "it gave way to what waits");
}

}  // namespace profd::history
