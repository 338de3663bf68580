// SPDX-License-Identifier: Apache-2.0
#include "daemon/fleet/question.h"

#include <fmt/format.h>

#include <algorithm>

#include "daemon/fleet/sql_literal.h"

namespace profd::fleet {
namespace {

constexpr uint32_t kSecondsOfHour = 3600;

struct ByRow {
  std::string_view name;
  By by;
  std::string_view column;  // an expression that is a String
};
// The one that has no column is no constant: servers of Distributed tables do
// not give these.
constexpr std::array<ByRow, 7> kByRows = {{
    {"all", By::kAll, "materialize('')"},
    {"service", By::kService, "toString(service)"},
    {"host", By::kHost, "toString(host)"},
    {"comm", By::kCommand, "toString(command)"},
    {"unit", By::kUnit, "toString(unit)"},
    {"pod", By::kPod,
     "if(pod = '' OR namespace = '', toString(pod), "
     "concat(toString(namespace), '/', toString(pod)))"},
    {"version", By::kVersion, "toString(version)"},
}};

std::string_view ColumnOf(By by) {
  return std::ranges::find(kByRows, by, &ByRow::by)->column;
}

std::string Times(const Question& question) {
  return fmt::format("time >= toDateTime({}) AND time < toDateTime({})",
                     question.from, question.until);
}

std::string Days(const Question& question) {
  return fmt::format(
      "day >= toDate(toDateTime({}, 'UTC')) AND "
      "day <= toDate(toDateTime({}, 'UTC'))",
      question.from, question.until);
}

// Whether a column has one of these names, of which there is one at least.
std::string IsOneOf(std::string_view column, const Names& names) {
  if (names.size() == 1) {
    return fmt::format("{} = {}", column, SqlText(names.front()));
  }
  std::string list;
  for (const std::string& name : names) {
    if (!list.empty()) list += ", ";
    AppendSqlText(name, list);
  }
  return fmt::format("{} IN ({})", column, list);
}

std::string IntervalsFilter(const Question& question) {
  std::string filter = Times(question);
  if (!question.host.empty()) {
    filter += " AND " + IsOneOf("host", question.host);
  }
  return filter;
}

std::string FunctionFilter(const Question& question) {
  const std::string_view wanted = question.function;
  const std::string has =
      wanted.starts_with('=')
          ? fmt::format("has(names, {})", SqlText(wanted.substr(1)))
          : fmt::format("arrayExists(name -> position(name, {}) > 0, names)",
                        SqlText(wanted));
  return fmt::format(
      "stack GLOBAL IN (SELECT stack FROM stacks WHERE {} AND {})",
      Days(question), has);
}

std::string SamplesFilter(const Question& question) {
  std::string filter =
      fmt::format("hour >= toDateTime({}) AND hour < toDateTime({}) AND {}",
                  question.from / kSecondsOfHour * kSecondsOfHour,
                  question.until, Times(question));
  const auto add = [&](std::string_view column, const Names& names) {
    if (!names.empty()) filter += " AND " + IsOneOf(column, names);
  };
  add("service", question.service);
  add("host", question.host);
  if (!question.kind.empty()) add("kind", {question.kind});
  add("command", question.command);
  add("version", question.version);
  Names units;
  for (const std::string& unit : question.unit) {
    units.push_back(unit);
    units.push_back(unit + ".service");
  }
  add("unit", units);
  if (!question.pod.empty()) {
    filter += fmt::format(" AND ({} OR {})", IsOneOf("pod", question.pod),
                          IsOneOf(ColumnOf(By::kPod), question.pod));
  }
  if (!question.function.empty()) {
    filter += " AND " + FunctionFilter(question);
  }
  return filter;
}

// What samples are summed by: columns as expressions with names, and these
// names; none of both: all samples are one sum.
struct SumsBy {
  std::string columns;
  std::string_view names;
};

std::string GroupBy(std::string_view names) {
  return names.empty() ? std::string() : fmt::format(" GROUP BY {}", names);
}

// A query for rows of these columns, and of cs, the number of samples, and vs,
// the sum of their values. A row that was sent twice is one: its key is all but
// the numbers. Tables may be those of several servers (Distributed): each adds
// up its own rows, and with GLOBAL gets what another one found.
std::string SumsSql(const Question& question, Doubles doubles,
                    const SumsBy& by) {
  const std::string filter = SamplesFilter(question);
  const std::string columns = by.columns.empty() ? "" : by.columns + ", ";
  if (doubles == Doubles::kNone) {
    return fmt::format(
        "SELECT {}sum(count) AS cs, sum(value) AS vs FROM samples WHERE {}{}",
        columns, filter, GroupBy(by.names));
  }
  const std::string sent_twice = fmt::format(
      "(SELECT run, time FROM intervals WHERE {} GROUP BY run, time "
      "HAVING count() > 1)",
      Times(question));
  return fmt::format(
      "SELECT {5}{4}sum(c) AS cs, sum(v) AS vs FROM ("
      "SELECT {0}sum(count) AS c, sum(value) AS v FROM samples "
      "WHERE {1} AND (run, time) GLOBAL NOT IN {2}{3} "
      "UNION ALL SELECT {0}any(count) AS c, any(value) AS v FROM samples "
      "WHERE {1} AND (run, time) GLOBAL IN {2} "
      "GROUP BY service, hour, stack, time, host, kind, command, unit, "
      "namespace, pod, container, container_id, version, parked, run){3}",
      columns, filter, sent_twice, GroupBy(by.names),
      by.names.empty() ? "" : ", ", by.names);
}

// A step's number. Times are at or after `from`.
std::string StepOf(const Question& question, uint32_t step) {
  return fmt::format("toUInt32(intDiv(toUInt32(time) - {}, {}))", question.from,
                     step);
}

}  // namespace

std::optional<By> ParseBy(std::string_view text) {
  const auto* const found = std::ranges::find(kByRows, text, &ByRow::name);
  if (found == kByRows.end()) return std::nullopt;
  return found->by;
}

// Rows of an interval that was sent several times are the same.
std::string CoverageSql(const Question& question, uint32_t step) {
  return fmt::format(
      "SELECT {} AS s, toUInt32(min(time)), toUInt64(max(ends)), "
      "toUInt64(sum(t)), toUInt64(sum(l)), toUInt64(count()), "
      "toUInt8(max(n) > 1) "
      "FROM (SELECT time, run, any(taken) AS t, any(lost) AS l, "
      "toUInt64(toUInt32(time)) + intDiv(any(duration_ns) + 999999999, "
      "1000000000) AS ends, count() AS n "
      "FROM intervals WHERE {} GROUP BY time, run) GROUP BY s ORDER BY s",
      StepOf(question, step), IntervalsFilter(question));
}

std::string KindsSql(const Question& question) {
  return fmt::format(
      "SELECT k, any(u) FROM intervals ARRAY JOIN kinds AS k, units AS u "
      "WHERE {} GROUP BY k ORDER BY k != 'cpu', k LIMIT 16",
      IntervalsFilter(question));
}

std::string RowNamesSql(const Question& question, Doubles doubles,
                        const RowsWanted& wanted) {
  return fmt::format(
      "SELECT toUInt64(count()), groupArray({})(x) FROM (SELECT x, "
      "sumIf(vs, k = {}) AS first, sum(vs) AS whole FROM ({}) GROUP BY x "
      "ORDER BY first DESC, whole DESC, x)",
      wanted.rows, SqlText(wanted.kind),
      SumsSql(question, doubles,
              {.columns = fmt::format("{} AS x, toString(kind) AS k",
                                      ColumnOf(wanted.by)),
               .names = "x, k"}));
}

std::string CellsSql(const Question& question, Doubles doubles,
                     const CellsWanted& wanted) {
  std::string rows;
  for (const std::string& row : wanted.rows) {
    rows += rows.empty() ? "[" : ",";
    AppendSqlText(row, rows);
  }
  // No constant, which servers of Distributed tables do not give.
  const std::string number = rows.empty()
                                 ? "toUInt32(parked * 0)"
                                 : fmt::format("toUInt32(indexOf({}], {}))",
                                               rows, ColumnOf(wanted.by));
  return fmt::format(
      "SELECT r, k, s, toUInt64(vs) FROM ({})",
      SumsSql(question, doubles,
              {.columns = fmt::format("{} AS r, toString(kind) AS k, {} AS s",
                                      number, StepOf(question, wanted.step)),
               .names = "r, k, s"}));
}

std::string StackSumsSql(const Question& question, Doubles doubles,
                         uint32_t most) {
  return fmt::format(
      "SELECT stack, x, p, toUInt64(cs), toUInt64(vs) AS sums FROM ({}) "
      "ORDER BY sums DESC, stack, x, p LIMIT {}",
      SumsSql(question, doubles,
              {.columns = "stack, toString(command) AS x, parked AS p",
               .names = "stack, x, p"}),
      most);
}

std::string WholeSumSql(const Question& question, Doubles doubles) {
  return fmt::format("SELECT toUInt64(cs), toUInt64(vs) FROM ({})",
                     SumsSql(question, doubles, {}));
}

// The table is in the order of frames, not of numbers, so that numbers are read
// of all rows, and frames only of those that are wanted.
std::string StacksSql(const Question& question,
                      std::span<const uint64_t> stacks) {
  return fmt::format(
      "SELECT stack, any(names), any(modules), any(kinds) FROM stacks "
      "PREWHERE stack IN ({}) WHERE {} GROUP BY stack",
      fmt::join(stacks, ","), Days(question));
}

std::string NamesSql(const Question& question, Doubles doubles, By by,
                     uint32_t most) {
  return fmt::format(
      "SELECT x, toUInt64(cs), toUInt64(vs) AS sums FROM ({}) "
      "ORDER BY sums DESC, x LIMIT {}",
      SumsSql(question, doubles,
              {.columns = fmt::format("{} AS x", ColumnOf(by)), .names = "x"}),
      most);
}

}  // namespace profd::fleet
