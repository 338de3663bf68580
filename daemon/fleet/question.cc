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
constexpr std::array<ByRow, 7> kByRows = {{
    {"all", By::kAll, "''"},
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

// GLOBAL: tables may be those of several servers (Distributed), each of which
// gets what another one found.
// The samples as rows of these columns, and of c, their number, and v, their
// value. A row that was sent twice is one: its key is all but the numbers.
std::string Source(const Question& question, Doubles doubles,
                   std::string_view columns) {
  const std::string filter = SamplesFilter(question);
  if (doubles == Doubles::kNone) {
    return fmt::format(
        "(SELECT {}, count AS c, value AS v FROM samples WHERE {})", columns,
        filter);
  }
  const std::string sent_twice = fmt::format(
      "(SELECT run, time FROM intervals WHERE {} GROUP BY run, time "
      "HAVING count() > 1)",
      Times(question));
  return fmt::format(
      "(SELECT {0}, count AS c, value AS v FROM samples "
      "WHERE {1} AND (run, time) GLOBAL NOT IN {2} "
      "UNION ALL SELECT {0}, any(count) AS c, any(value) AS v FROM samples "
      "WHERE {1} AND (run, time) GLOBAL IN {2} "
      "GROUP BY service, hour, stack, time, host, kind, command, unit, "
      "namespace, pod, container, container_id, version, parked, run)",
      columns, filter, sent_twice);
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
      "sumIf(v, k = {}) AS first, sum(v) AS whole FROM {} GROUP BY x "
      "ORDER BY first DESC, whole DESC, x)",
      wanted.rows, SqlText(wanted.kind),
      Source(question, doubles,
             fmt::format("{} AS x, toString(kind) AS k", ColumnOf(wanted.by))));
}

std::string CellsSql(const Question& question, Doubles doubles,
                     const CellsWanted& wanted) {
  std::string rows;
  for (const std::string& row : wanted.rows) {
    rows += rows.empty() ? "[" : ",";
    AppendSqlText(row, rows);
  }
  const std::string number =
      rows.empty() ? "toUInt32(0)"
                   : fmt::format("toUInt32(indexOf({}], x))", rows);
  return fmt::format(
      "SELECT {} AS r, k, s, toUInt64(sum(v)) FROM {} GROUP BY r, k, s", number,
      Source(question, doubles,
             fmt::format("{} AS x, toString(kind) AS k, {} AS s",
                         ColumnOf(wanted.by), StepOf(question, wanted.step))));
}

std::string StackSumsSql(const Question& question, Doubles doubles,
                         uint32_t most) {
  return fmt::format(
      "SELECT stack, x, p, toUInt64(sum(c)), toUInt64(sum(v)) AS sums FROM {} "
      "GROUP BY stack, x, p ORDER BY sums DESC, stack, x, p LIMIT {}",
      Source(question, doubles, "stack, toString(command) AS x, parked AS p"),
      most);
}

std::string WholeSumSql(const Question& question, Doubles doubles) {
  return fmt::format("SELECT toUInt64(sum(c)), toUInt64(sum(v)) FROM {}",
                     Source(question, doubles, "stack"));
}

std::string StacksSql(const Question& question,
                      std::span<const uint64_t> stacks) {
  return fmt::format(
      "SELECT stack, any(names), any(modules), any(kinds) FROM stacks "
      "WHERE {} AND stack IN ({}) GROUP BY stack",
      Days(question), fmt::join(stacks, ","));
}

std::string NamesSql(const Question& question, Doubles doubles, By by,
                     uint32_t most) {
  return fmt::format(
      "SELECT x, toUInt64(sum(c)), toUInt64(sum(v)) AS sums FROM {} GROUP BY x "
      "ORDER BY sums DESC, x LIMIT {}",
      Source(question, doubles, fmt::format("{} AS x", ColumnOf(by))), most);
}

}  // namespace profd::fleet
