// SPDX-License-Identifier: Apache-2.0
#include "daemon/history/columns.h"

#include <algorithm>
#include <concepts>
#include <limits>
#include <tuple>
#include <utility>

#include "daemon/history/limits.h"
#include "ksym/base/bounded_name.h"
#include "ksym/base/byte_cursor.h"
#include "ksym/base/byte_writer.h"

namespace profd::history {
namespace {

using ksym::ErrorCode;
using ksym::Fail;
using ksym::Status;

// How the numbers of a column are written.
enum class Code : uint8_t {
  kPlain,     // as they are
  kStep,      // less the one before, which may be negative
  kDistance,  // the element's own place less the number
};

template <typename Element, typename Value>
struct Field {
  Value Element::* member;
  Code code = Code::kPlain;
};

// The columns of each table in their order in the file. A change here is a new
// version of the format.
constexpr std::tuple kFunctionFields = {Field{&Function::name, Code::kStep},
                                        Field{&Function::object},
                                        Field{&Function::build_id},
                                        Field{&Function::function},
                                        Field{&Function::file},
                                        Field{&Function::kind},
                                        Field{&Function::reason},
                                        Field{&Function::first_line},
                                        Field{&Function::flags}};
constexpr std::tuple kNodeFields = {Field{&Node::parent, Code::kDistance},
                                    Field{&Node::function}};
constexpr std::tuple kKindFields = {
    Field{&Kind::name},         Field{&Kind::unit},
    Field{&Kind::event},        Field{&Kind::frequency_hz},
    Field{&Kind::count_period}, Field{&Kind::has_values}};
constexpr std::tuple kSettingFields = {Field{&Setting::version},
                                       Field{&Setting::hostname},
                                       Field{&Setting::kernel_release},
                                       Field{&Setting::architecture},
                                       Field{&Setting::cpus},
                                       Field{&Setting::stack_store},
                                       Field{&Setting::unwind},
                                       Field{&Setting::warnings},
                                       Field{&Setting::boot},
                                       Field{&Setting::run},
                                       Field{&Setting::max_stack_depth},
                                       Field{&Setting::kinds}};
constexpr std::tuple kPartFields = {
    Field{&Part::start_unix_ns, Code::kStep}, Field{&Part::duration_ns},
    Field{&Part::setting}, Field{&Part::counters}};
constexpr std::tuple kCounterFields = {Field{&Counter::name},
                                       Field{&Counter::value}};
constexpr std::tuple kSeriesFields = {Field{&Series::comm},
                                      Field{&Series::cgroup},
                                      Field{&Series::pid, Code::kStep},
                                      Field{&Series::tid},
                                      Field{&Series::kind},
                                      Field{&Series::user_state},
                                      Field{&Series::kernel_state},
                                      Field{&Series::parked}};
constexpr std::tuple kRowFields = {Field{&Row::series, Code::kStep},
                                   Field{&Row::user, Code::kStep},
                                   Field{&Row::kernel, Code::kStep},
                                   Field{&Row::part, Code::kStep},
                                   Field{&Row::count},
                                   Field{&Row::value}};

constexpr std::tuple kCgroupNameFields = {
    Field{&CgroupName::cgroup, Code::kStep}, Field{&CgroupName::pod_namespace},
    Field{&CgroupName::pod}, Field{&CgroupName::container}};
constexpr std::tuple kThinningFields = {Field{&Thinning::stacks}};

// All tables' fields; the two more are the texts' sizes and their bytes.
constexpr size_t kFields = std::tuple_size_v<decltype(kFunctionFields)> +
                           std::tuple_size_v<decltype(kNodeFields)> +
                           std::tuple_size_v<decltype(kKindFields)> +
                           std::tuple_size_v<decltype(kSettingFields)> +
                           std::tuple_size_v<decltype(kPartFields)> +
                           std::tuple_size_v<decltype(kCounterFields)> +
                           std::tuple_size_v<decltype(kSeriesFields)> +
                           std::tuple_size_v<decltype(kRowFields)> +
                           std::tuple_size_v<decltype(kCgroupNameFields)> +
                           std::tuple_size_v<decltype(kThinningFields)>;
static_assert(kFields + 2 == kColumns);

// Calls `call` with each field and the number of its column, from `first` on;
// the number after the last one.
template <typename Fields, typename Call>
size_t ForEachField(const Fields& fields, size_t first, const Call& call) {
  std::apply([&](const auto&... field) { (call(field, first++), ...); },
             fields);
  return first;
}

std::string TextOf(const ksym::ByteWriter& writer) {
  const auto bytes = writer.bytes();
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

class ColumnWriter {
 public:
  explicit ColumnWriter(Columns& columns) : columns_(columns) {}

  void AddStrings(const StringTable& strings, size_t from) {
    ksym::ByteWriter lengths;
    std::string& texts = columns_[next_ + 1];
    for (size_t id = from; id < strings.size(); ++id) {
      const std::string_view text = strings.Get(static_cast<StringId>(id));
      lengths.WriteUleb128(text.size());
      texts += text;
    }
    columns_[next_] = TextOf(lengths);
    next_ += 2;
  }

  template <typename Element, typename Fields>
  void Add(const std::vector<Element>& table, size_t from,
           const Fields& fields) {
    next_ = ForEachField(fields, next_, [&](const auto& field, size_t column) {
      ksym::ByteWriter writer;
      uint64_t before = 0;
      for (size_t place = from; place < table.size(); ++place) {
        const uint64_t value = table[place].*field.member;
        if (field.code == Code::kStep) {
          writer.WriteSleb128(static_cast<int64_t>(value - before));
          before = value;
        } else {
          writer.WriteUleb128(field.code == Code::kDistance ? place - value
                                                            : value);
        }
      }
      columns_[column] = TextOf(writer);
    });
  }

 private:
  Columns& columns_;
  size_t next_ = 0;
};

std::span<const std::byte> BytesOfView(std::string_view text) {
  return std::as_bytes(std::span(text));
}

// Reads the new elements of one table after the other into vectors of their
// own; remembers the first failure.
class ColumnReader {
 public:
  explicit ColumnReader(const ColumnViews& columns) : columns_(columns) {}

  // The elements that come behind `there` others, together at most `most`.
  template <typename Element, typename Fields>
  std::vector<Element> Read(size_t there, size_t most, const Fields& fields) {
    std::vector<Element> table;
    // The first column tells how many there are: a number is a byte or more.
    if (!status_) return table;
    Room room = {.there = there, .most = most, .is_first = true};
    next_ = ForEachField(fields, next_, [&](const auto& field, size_t column) {
      if (!status_) return;
      ReadField(field, columns_[column], room, table);
      room.is_first = false;
    });
    return table;
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
  // The table that a column adds to has so many others, and room for so many.
  struct Room {
    size_t there = 0;
    size_t most = 0;
    bool is_first = false;  // the column tells how many elements come
  };

  template <typename Element, typename Value>
  void ReadField(const Field<Element, Value>& field, std::string_view bytes,
                 const Room& room, std::vector<Element>& table) {
    ksym::ByteCursor cursor(BytesOfView(bytes));
    size_t at = 0;
    uint64_t before = 0;
    for (; !cursor.AtEnd(); ++at) {
      if (room.is_first) {
        if (room.there + table.size() >= room.most) return SetTooLarge();
        table.emplace_back();
      } else if (at == table.size()) {
        return SetCorrupt("columns differ in length");
      }
      uint64_t value = 0;
      if (field.code == Code::kStep) {
        value = before += static_cast<uint64_t>(cursor.ReadSleb128());
      } else {
        value = cursor.ReadUleb128();
        // A distance beyond the beginning wraps, and is refused as too large.
        if (field.code == Code::kDistance) value = room.there + at - value;
      }
      if (!cursor.ok()) return SetCorrupt("a number ends early");
      if (value > std::numeric_limits<Value>::max()) {
        return SetCorrupt("a number is too large");
      }
      table[at].*field.member = static_cast<Value>(value);
    }
    if (at != table.size()) SetCorrupt("columns differ in length");
  }

  void SetCorrupt(const char* what) {
    status_ = Fail(ErrorCode::kCorrupt, what);
  }
  void SetTooLarge() {
    status_ = Fail(ErrorCode::kLimit, "holds more than a file may");
  }

  const ColumnViews& columns_;
  size_t next_ = 0;
  Status status_;
};

// The new elements of each table.
struct NewElements {
  std::vector<std::string_view> strings;
  std::vector<Function> functions;
  std::vector<Node> nodes;
  std::vector<Kind> kinds;
  std::vector<Setting> settings;
  std::vector<Part> parts;
  std::vector<Counter> counters;
  std::vector<Series> series;
  std::vector<Row> rows;
  std::vector<CgroupName> cgroup_names;
  std::vector<Thinning> thinnings;
};

// The new elements of a table of lists: so many behind `there` others.
struct Listed {
  size_t there = 0;
  size_t added = 0;
};

// Sets first and checks that the lists of all `elements` are the listed ones.
template <typename Element>
bool PlaceLists(std::vector<Element>& elements, uint32_t Element::* first,
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
bool AllBelow(const std::vector<Element>& elements, size_t end,
              Members... members) {
  return std::ranges::all_of(elements, [&](const Element& element) {
    return ((element.*members < end) && ...);
  });
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
  bool Add(const std::vector<Row>& rows) {
    return std::ranges::all_of(rows, [this](const Row& row) {
      return !__builtin_add_overflow(count, row.count, &count) &&
             !__builtin_add_overflow(value, row.value, &value);
    });
  }
};

void CheckPlaces(const Tables& tables, NewElements& elements,
                 ColumnReader& reader) {
  CheckNames(elements, tables.strings.size() + elements.strings.size(), reader);
  reader.Check(AllBelow(elements.nodes,
                        tables.functions.size() + elements.functions.size(),
                        &Node::function),
               "a function is not there");
  // Distances that are 0, or wrap, give a parent that is not before its child.
  size_t place = tables.nodes.size();
  for (const Node& node : elements.nodes) {
    reader.Check(node.parent < place++, "a caller is not before its callee");
  }
  reader.Check(AllBelow(elements.kinds, 2, &Kind::has_values) &&
                   AllBelow(elements.series, 2, &Series::parked) &&
                   AllBelow(elements.functions, 4, &Function::flags),
               "a flag is neither set nor clear");
  reader.Check(
      PlaceLists(elements.settings, &Setting::first_kind, &Setting::kinds,
                 {tables.kinds.size(), elements.kinds.size()}) &&
          std::ranges::all_of(elements.settings,
                              [](const Setting& setting) {
                                return setting.kinds > 0 &&
                                       setting.kinds <= kMaxSampleKinds;
                              }),
      "kinds belong to no setting");
  reader.Check(PlaceLists(elements.parts, &Part::first_counter, &Part::counters,
                          {tables.counters.size(), elements.counters.size()}),
               "counters belong to no part");
  reader.Check(AllBelow(elements.parts,
                        tables.settings.size() + elements.settings.size(),
                        &Part::setting),
               "a setting is not there");
  constexpr size_t kStates = static_cast<size_t>(StackState::kBeyondCopy) + 1;
  reader.Check(
      AllBelow(elements.series, tables.kinds.size() + elements.kinds.size(),
               &Series::kind) &&
          AllBelow(elements.series, kStates, &Series::user_state,
                   &Series::kernel_state),
      "a series has no such kind or state");
  reader.Check(
      AllBelow(elements.rows, tables.series.size() + elements.series.size(),
               &Row::series) &&
          AllBelow(elements.rows, tables.nodes.size() + elements.nodes.size(),
                   &Row::user, &Row::kernel) &&
          AllBelow(elements.rows, tables.parts.size() + elements.parts.size(),
                   &Row::part),
      "a row's series, stack or part is not there");
}

template <typename Element>
void AppendTo(std::vector<Element>& table, const std::vector<Element>& more) {
  table.insert(table.end(), more.begin(), more.end());
}

NewElements ReadElements(const Tables& tables, ColumnReader& reader) {
  NewElements read;
  read.strings = reader.ReadStrings(tables.strings.size(), tables.text_bytes);
  read.functions = reader.Read<Function>(tables.functions.size(), kMaxFunctions,
                                         kFunctionFields);
  read.nodes = reader.Read<Node>(tables.nodes.size(), kMaxNodes, kNodeFields);
  read.kinds =
      reader.Read<Kind>(tables.kinds.size(), kMaxSettings, kKindFields);
  read.settings = reader.Read<Setting>(tables.settings.size(), kMaxSettings,
                                       kSettingFields);
  read.parts = reader.Read<Part>(tables.parts.size(), kMaxParts, kPartFields);
  read.counters = reader.Read<Counter>(
      tables.counters.size(), kMaxParts * kMaxCountersOfPart, kCounterFields);
  read.series =
      reader.Read<Series>(tables.series.size(), kMaxSeries, kSeriesFields);
  read.rows = reader.Read<Row>(tables.rows.size(), kMaxRows, kRowFields);
  read.cgroup_names = reader.Read<CgroupName>(
      tables.cgroup_names.size(), kMaxCgroupNames, kCgroupNameFields);
  read.thinnings = reader.Read<Thinning>(tables.thinnings.size(), kMaxThinnings,
                                         kThinningFields);
  return read;
}

}  // namespace

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

Status AppendColumns(const ColumnViews& columns, Tables& tables) {
  ColumnReader reader(columns);
  NewElements read = ReadElements(tables, reader);
  CheckPlaces(tables, read, reader);
  RowSums sums = {.count = tables.count_sum, .value = tables.value_sum};
  reader.Check(sums.Add(read.rows), "counts are too large");
  if (!reader.status()) return reader.status();
  // Texts last of all that can fail.
  for (const std::string_view text : read.strings) {
    const size_t next = tables.strings.size();
    if (tables.strings.Intern(text) != next) {
      return Fail(ErrorCode::kCorrupt, "a text is there twice");
    }
    tables.text_bytes += text.size();
  }
  AppendTo(tables.functions, read.functions);
  AppendTo(tables.nodes, read.nodes);
  AppendTo(tables.kinds, read.kinds);
  AppendTo(tables.settings, read.settings);
  AppendTo(tables.parts, read.parts);
  AppendTo(tables.counters, read.counters);
  AppendTo(tables.series, read.series);
  AppendTo(tables.rows, read.rows);
  AppendTo(tables.cgroup_names, read.cgroup_names);
  AppendTo(tables.thinnings, read.thinnings);
  tables.count_sum = sums.count;
  tables.value_sum = sums.value;
  return {};
}

}  // namespace profd::history
