// SPDX-License-Identifier: Apache-2.0
#include "daemon/fleet/answers.h"

#include <utility>

#include "daemon/clickhouse/frame_numbers.h"
#include "daemon/fleet/row_reader.h"
#include "daemon/history/limits.h"

namespace profd::fleet {
namespace {

using ksym::Fail;
using ksym::Result;

constexpr size_t kMaxRowNames = 1000;  // more than are asked for

// All rows, each as `read` makes it.
template <typename Row, typename Read>
Result<std::vector<Row>> ReadRows(std::string_view bytes, const Read& read) {
  std::vector<Row> rows;
  RowReader reader(bytes);
  while (reader.HasRow()) rows.push_back(read(reader));
  if (auto whole = reader.Finish(); !whole) return Fail(whole.error());
  return rows;
}

// A list of so many texts at the most.
std::vector<std::string_view> ReadTexts(RowReader& reader, size_t most) {
  std::vector<std::string_view> texts;
  const size_t size = reader.List();
  if (size > most) {
    reader.Refuse();
    return texts;
  }
  texts.reserve(size);
  for (size_t i = 0; i < size; ++i) texts.push_back(reader.Text());
  return texts;
}

// A later version may store kinds that this one does not know: their frames are
// native code of no file.
const FrameKind* KindOf(uint8_t number) {
  if (number == clickhouse::kMarkNumber) return nullptr;
  for (const auto& [kind, known] : clickhouse::kFrameNumbers) {
    if (known == number) return kind;
  }
  return &kJitFrame;
}

StoredStack ReadStack(RowReader& reader) {
  StoredStack stack;
  stack.stack = reader.Number<uint64_t>();
  const auto names = ReadTexts(reader, history::kMaxStackDepth);
  const auto modules = ReadTexts(reader, history::kMaxStackDepth);
  const size_t kinds = reader.List();
  if (modules.size() != names.size() || kinds != names.size()) {
    reader.Refuse();
    return stack;
  }
  for (size_t i = 0; i < kinds; ++i) {
    stack.frames.push_back({.kind = KindOf(reader.Number<uint8_t>()),
                            .name = names[i],
                            .module = modules[i]});
  }
  return stack;
}

}  // namespace

Result<std::vector<CoverageRow>> ReadCoverage(std::string_view rows) {
  return ReadRows<CoverageRow>(rows, [](RowReader& reader) {
    CoverageRow row;
    row.step = reader.Number<uint32_t>();
    row.first_unix_s = reader.Number<uint32_t>();
    row.end_unix_s = reader.Number<uint64_t>();
    row.taken = reader.Number<uint64_t>();
    row.lost = reader.Number<uint64_t>();
    row.intervals = reader.Number<uint64_t>();
    row.has_doubles = reader.Number<uint8_t>() != 0;
    return row;
  });
}

Result<std::vector<KindRow>> ReadKinds(std::string_view rows) {
  return ReadRows<KindRow>(rows, [](RowReader& reader) {
    KindRow row;
    row.name = reader.Text();
    row.unit = reader.Text();
    return row;
  });
}

Result<RowNames> ReadRowNames(std::string_view rows) {
  auto read = ReadRows<RowNames>(rows, [](RowReader& reader) {
    RowNames names;
    names.names = reader.Number<uint64_t>();
    for (const std::string_view name : ReadTexts(reader, kMaxRowNames)) {
      names.largest.emplace_back(name);
    }
    return names;
  });
  if (!read) return Fail(std::move(read.error()));
  // Without samples there may be no row.
  return read->empty() ? RowNames() : std::move(read->front());
}

Result<std::vector<Cell>> ReadCells(std::string_view rows) {
  return ReadRows<Cell>(rows, [](RowReader& reader) {
    Cell cell;
    cell.row = reader.Number<uint32_t>();
    cell.kind = reader.Text();
    cell.step = reader.Number<uint32_t>();
    cell.value = reader.Number<uint64_t>();
    return cell;
  });
}

Result<std::vector<StackSum>> ReadStackSums(std::string_view rows) {
  return ReadRows<StackSum>(rows, [](RowReader& reader) {
    StackSum sum;
    sum.stack = reader.Number<uint64_t>();
    sum.command = reader.Text();
    sum.parked = reader.Number<uint8_t>() != 0;
    sum.count = reader.Number<uint64_t>();
    sum.value = reader.Number<uint64_t>();
    return sum;
  });
}

Result<WholeSum> ReadWholeSum(std::string_view rows) {
  const auto read = ReadRows<WholeSum>(rows, [](RowReader& reader) {
    WholeSum sum;
    sum.count = reader.Number<uint64_t>();
    sum.value = reader.Number<uint64_t>();
    return sum;
  });
  if (!read) return Fail(read.error());
  return read->empty() ? WholeSum() : read->front();
}

ksym::Status ReadStacks(std::string_view rows,
                        const std::function<void(const StoredStack&)>& use) {
  RowReader reader(rows);
  while (reader.HasRow()) {
    const StoredStack stack = ReadStack(reader);
    if (auto whole = reader.Finish(); !whole) return whole;
    use(stack);
  }
  return {};
}

Result<std::vector<NameSum>> ReadNameSums(std::string_view rows) {
  return ReadRows<NameSum>(rows, [](RowReader& reader) {
    NameSum sum;
    sum.name = reader.Text();
    sum.count = reader.Number<uint64_t>();
    sum.value = reader.Number<uint64_t>();
    return sum;
  });
}

}  // namespace profd::fleet
