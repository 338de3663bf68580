// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <limits>
#include <span>
#include <vector>

#include "daemon/history/column_fields.h"
#include "daemon/history/columns.h"
#include "daemon/history/limits.h"
#include "daemon/history/number_reader.h"
#include "ksym/base/bounded_name.h"
#include "ksym/base/byte_cursor.h"

namespace profd::history {
namespace {

using ksym::ErrorCode;
using ksym::Fail;
using ksym::Status;

std::span<const std::byte> BytesOfView(std::string_view text) {
  return std::as_bytes(std::span(text));
}

// The numbers of a column: one ends with each byte that none follows in it.
size_t CountNumbers(std::string_view column) {
  return static_cast<size_t>(std::ranges::count_if(
      column, [](char byte) { return (byte & 0x80) == 0; }));
}

// Reads the new elements of one table after the other behind those that are
// there; remembers the first failure.
class ColumnReader {
 public:
  ColumnReader(const ColumnViews& columns, Content content)
      : columns_(columns), content_(content) {}

  // The table has at most `most` elements afterwards.
  template <typename Element, typename Fields>
  void Read(std::vector<Element>& table, size_t most, const Fields& fields) {
    if (!status_) return;
    const size_t there = table.size();
    const size_t more =
        HasColumn(content_, next_) ? CountNumbers(columns_[next_]) : 0;
    if (more > most - there) return SetTooLarge();
    table.resize(there + more);
    next_ = ForEachField(fields, next_, [&](const auto& field, size_t column) {
      if (!status_ || !HasColumn(content_, column)) return;
      ReadField(field, columns_[column], there, table);
    });
  }

  std::vector<std::string_view> ReadStrings(size_t there, size_t text_bytes) {
    std::vector<std::string_view> strings;
    ksym::ByteCursor lengths(BytesOfView(columns_[0]));
    std::string_view texts = columns_[1];
    next_ = 2;
    if (texts.size() > kMaxTextBytes - text_bytes) SetTooLarge();
    while (status_ && !lengths.AtEnd()) {
      const uint64_t size = lengths.ReadUleb128();
      if (!lengths.ok() || size > texts.size()) {
        SetCorrupt("a text ends early");
      } else if (size > ksym::kMaxShownBytes) {
        SetCorrupt("a text is too long");
      } else if (there + strings.size() >= kMaxStrings) {
        SetTooLarge();
      } else {
        strings.push_back(texts.substr(0, size));
        texts.remove_prefix(size);
      }
    }
    if (status_ && !texts.empty()) SetCorrupt("bytes belong to no text");
    return strings;
  }

  void Check(bool is_right, const char* what) {
    if (status_ && !is_right) SetCorrupt(what);
  }
  const Status& status() const { return status_; }

 private:
  template <typename Element, typename Value>
  void ReadField(const Field<Element, Value>& field, std::string_view bytes,
                 size_t there, std::vector<Element>& table) {
    if (CountNumbers(bytes) != table.size() - there) {
      return SetCorrupt("columns differ in length");
    }
    switch (field.code) {
      case Code::kPlain:
        return ReadNumbers<Code::kPlain>(field.member, bytes, there, table);
      case Code::kStep:
        return ReadNumbers<Code::kStep>(field.member, bytes, there, table);
      case Code::kDistance:
        return ReadNumbers<Code::kDistance>(field.member, bytes, there, table);
    }
  }

  // As many as there are elements behind `there` others.
  template <Code kCode, typename Element, typename Value>
  void ReadNumbers(Value Element::* member, std::string_view bytes,
                   size_t there, std::vector<Element>& table) {
    NumberReader numbers(bytes);
    uint64_t value = 0;
    bool is_too_large = false;
    for (size_t at = there; at < table.size(); ++at) {
      value = numbers.Read<kCode>(value, at);
      is_too_large |= value > std::numeric_limits<Value>::max();
      table[at].*member = static_cast<Value>(value);
    }
    // Bytes behind the last number are of one that has no end.
    if (!numbers.IsDone()) return SetCorrupt("a number ends early");
    if (is_too_large) SetCorrupt("a number is too large");
  }

  void SetCorrupt(const char* what) {
    status_ = Fail(ErrorCode::kCorrupt, what);
  }
  void SetTooLarge() {
    status_ = Fail(ErrorCode::kLimit, "holds more than a file may");
  }

  const ColumnViews& columns_;
  const Content content_;
  size_t next_ = 0;
  Status status_;
};

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

// The new elements of a table of lists: so many behind `there` others.
struct Listed {
  size_t there = 0;
  size_t added = 0;
};

// Sets first and checks that the lists of all `elements` are the listed ones.
template <typename Element>
bool PlaceLists(std::span<Element> elements, uint32_t Element::* first,
                uint32_t Element::* count, Listed listed) {
  const size_t end = listed.there + listed.added;
  uint64_t next = listed.there;
  for (Element& element : elements) {
    element.*first = static_cast<uint32_t>(next);
    next += element.*count;
    if (next > end) return false;
  }
  return next == end;
}

template <typename Element, typename... Members>
bool AllBelow(std::span<Element> elements, size_t end, Members... members) {
  // All are looked at: a loop that may end early is slower, and hardly ever
  // does.
  bool are_below = true;
  for (const auto& element : elements) {
    are_below &= ((element.*members < end) & ...);
  }
  return are_below;
}

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
