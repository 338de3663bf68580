// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <limits>
#include <span>
#include <vector>

#include "daemon/history/column_fields.h"
#include "daemon/history/column_reader.h"
#include "daemon/history/columns.h"
#include "daemon/history/limits.h"

namespace profd::history {
namespace {

using ksym::ErrorCode;
using ksym::Fail;
using ksym::Status;

// The elements of each table that were read, behind the ones before.
struct NewElements {
  NewElements(Tables& tables, const Sizes& sizes)
      : before(sizes),
        functions(std::span(tables.functions).subspan(before.functions)),
        nodes(std::span(tables.nodes).subspan(before.nodes)),
        kinds(std::span(tables.kinds).subspan(before.kinds)),
        settings(std::span(tables.settings).subspan(before.settings)),
        parts(std::span(tables.parts).subspan(before.parts)),
        counters(std::span(tables.counters).subspan(before.counters)),
        series(std::span(tables.series).subspan(before.series)),
        rows(std::span(tables.rows).subspan(before.rows)),
        cgroup_names(
            std::span(tables.cgroup_names).subspan(before.cgroup_names)) {}

  Sizes before;
  std::span<const Function> functions;
  std::span<const Node> nodes;
  std::span<const Kind> kinds;
  std::span<Setting> settings;
  std::span<Part> parts;
  std::span<const Counter> counters;
  std::span<const Series> series;
  std::span<const Row> rows;
  std::span<const CgroupName> cgroup_names;
};

void CheckNames(const NewElements& elements, size_t strings,
                ColumnReader& reader) {
  constexpr const char* kWhat = "a text is not there";
  reader.Check(
      AllBelow(elements.functions, strings, &Function::name, &Function::object,
               &Function::build_id, &Function::function, &Function::file,
               &Function::kind, &Function::reason),
      kWhat);
  reader.Check(
      AllBelow(elements.kinds, strings, &Kind::name, &Kind::unit, &Kind::event),
      kWhat);
  reader.Check(AllBelow(elements.settings, strings, &Setting::version,
                        &Setting::hostname, &Setting::kernel_release,
                        &Setting::architecture, &Setting::cpus,
                        &Setting::stack_store, &Setting::unwind,
                        &Setting::warnings, &Setting::boot, &Setting::run),
               kWhat);
  reader.Check(AllBelow(elements.counters, strings, &Counter::name), kWhat);
  reader.Check(
      AllBelow(elements.series, strings, &Series::comm, &Series::cgroup),
      kWhat);
  reader.Check(AllBelow(elements.cgroup_names, strings, &CgroupName::cgroup,
                        &CgroupName::pod_namespace, &CgroupName::pod,
                        &CgroupName::container),
               kWhat);
}

// The counts and values of rows.
struct RowSums {
  uint64_t count = 0;
  uint64_t value = 0;

  // False: one of them does not stay below 2^64.
  bool Add(std::span<const Row> rows) {
    return std::ranges::all_of(rows, [this](const Row& row) {
      return !__builtin_add_overflow(count, row.count, &count) &&
             !__builtin_add_overflow(value, row.value, &value);
    });
  }
};

// `strings` is how many there are with those that come. Sets where lists begin.
void CheckPlaces(const Tables& tables, size_t strings, NewElements& elements,
                 ColumnReader& reader) {
  const Sizes& before = elements.before;
  CheckNames(elements, strings, reader);
  reader.Check(
      AllBelow(elements.nodes, tables.functions.size(), &Node::function),
      "a function is not there");
  // Distances that are 0, or wrap, give a parent that is not before its child.
  size_t place = before.nodes;
  const bool is_tree = std::ranges::all_of(
      elements.nodes,
      [&place](const Node& node) { return node.parent < place++; });
  reader.Check(is_tree, "a caller is not before its callee");
  reader.Check(AllBelow(elements.kinds, 2, &Kind::has_values) &&
                   AllBelow(elements.series, 2, &Series::parked) &&
                   AllBelow(elements.functions, 4, &Function::flags),
               "a flag is neither set nor clear");
  reader.Check(
      PlaceLists(elements.settings, &Setting::first_kind, &Setting::kinds,
                 {before.kinds, elements.kinds.size()}) &&
          std::ranges::all_of(elements.settings,
                              [](const Setting& setting) {
                                return setting.kinds > 0 &&
                                       setting.kinds <= kMaxSampleKinds;
                              }),
      "kinds belong to no setting");
  reader.Check(PlaceLists(elements.parts, &Part::first_counter, &Part::counters,
                          {before.counters, elements.counters.size()}),
               "counters belong to no part");
  reader.Check(AllBelow(elements.parts, tables.settings.size(), &Part::setting),
               "a setting is not there");
  constexpr size_t kStates = static_cast<size_t>(StackState::kBeyondCopy) + 1;
  reader.Check(AllBelow(elements.series, tables.kinds.size(), &Series::kind) &&
                   AllBelow(elements.series, kStates, &Series::user_state,
                            &Series::kernel_state),
               "a series has no such kind or state");
  reader.Check(AllBelow(elements.rows, tables.series.size(), &Row::series) &&
                   AllBelow(elements.rows, tables.nodes.size(), &Row::user,
                            &Row::kernel) &&
                   AllBelow(elements.rows, tables.parts.size(), &Row::part),
               "a row's series, stack or part is not there");
}

void ReadTables(ColumnReader& reader, Tables& tables) {
  const size_t rows = tables.rows.size();
  reader.Read(tables.functions, kMaxFunctions, kFunctionFields);
  reader.Read(tables.nodes, kMaxNodes, kNodeFields);
  reader.Read(tables.kinds, kMaxSettings, kKindFields);
  reader.Read(tables.settings, kMaxSettings, kSettingFields);
  reader.Read(tables.parts, kMaxParts, kPartFields);
  reader.Read(tables.counters, kMaxParts * kMaxCountersOfPart, kCounterFields);
  reader.Read(tables.series, kMaxSeries, kSeriesFields);
  reader.Read(tables.rows, kMaxRows, kRowFields);
  reader.Read(tables.cgroup_names, kMaxCgroupNames, kCgroupNameFields);
  reader.Read(tables.thinnings, kMaxThinnings, kThinningFields);
  reader.ReadUnlessZero(tables.rows, rows, kSliceField);
}

// All but strings, which nothing names then.
void TakeBack(Tables& tables, const Sizes& before) {
  tables.functions.resize(before.functions);
  tables.nodes.resize(before.nodes);
  tables.kinds.resize(before.kinds);
  tables.settings.resize(before.settings);
  tables.parts.resize(before.parts);
  tables.counters.resize(before.counters);
  tables.series.resize(before.series);
  tables.rows.resize(before.rows);
  tables.cgroup_names.resize(before.cgroup_names);
  tables.thinnings.resize(before.thinnings);
}

Status ReadAndCheck(const ColumnViews& columns, Content content,
                    Tables& tables) {
  const Sizes before = tables.sizes();
  ColumnReader reader(columns, content);
  const auto strings =
      reader.ReadStrings(tables.strings.size(), tables.text_bytes);
  ReadTables(reader, tables);
  if (!reader.status()) return reader.status();
  NewElements read(tables, before);
  CheckPlaces(tables, before.strings + strings.size(), read, reader);
  RowSums sums = {.count = tables.count_sum, .value = tables.value_sum};
  reader.Check(sums.Add(read.rows), "counts are too large");
  if (!reader.status()) return reader.status();
  // Texts last of all that can fail.
  for (const std::string_view text : strings) {
    const size_t next = tables.strings.size();
    if (tables.strings.Intern(text) != next) {
      return Fail(ErrorCode::kCorrupt, "a text is there twice");
    }
    tables.text_bytes += text.size();
  }
  tables.count_sum = sums.count;
  tables.value_sum = sums.value;
  return {};
}

}  // namespace

Status AppendColumns(const ColumnViews& columns, Tables& tables,
                     Content content) {
  const Sizes before = tables.sizes();
  auto done = ReadAndCheck(columns, content, tables);
  if (!done) TakeBack(tables, before);
  return done;
}

}  // namespace profd::history
