// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace profd::fleet {

// Names of which a sample has one; all samples where there is none.
using Names = std::vector<std::string>;

// Which samples of a fleet are wanted; an empty text asks for nothing.
struct Question {
  // Intervals that begin in [from, until), in seconds since 1970.
  uint32_t from = 0;
  uint32_t until = 0;
  std::string kind = {};  // of samples
  Names service = {};
  Names host = {};
  Names command = {};
  Names unit = {};  // "nginx.service", or "nginx" for that
  Names pod = {};   // its name, or "namespace/name"
  Names version = {};
  // Stacks with a function whose name has this in it, or is what follows "=".
  std::string function = {};
};

// The members that are names, by their names in requests; the second one
// is that of the question that is compared with.
struct NameFilter {
  std::string_view name;
  std::string_view name_before;
  Names Question::* member;
};
inline constexpr std::array<NameFilter, 6> kNameFilters = {{
    {"service", "before_service", &Question::service},
    {"host", "before_host", &Question::host},
    {"command", "before_command", &Question::command},
    {"unit", "before_unit", &Question::unit},
    {"pod", "before_pod", &Question::pod},
    {"version", "before_version", &Question::version},
}};

// The columns that samples are told apart by.
enum class By : uint8_t {
  kAll,
  kService,
  kHost,
  kCommand,
  kUnit,
  kPod,
  kVersion
};
// "all", "service", "host", "comm", "unit", "pod" or "version".
std::optional<By> ParseBy(std::string_view text);

// Queries in the SQL of ClickHouse 18.16 and later, for the tables of
// docs/fleet.md. Texts of questions are literals in them (sql_literal.h). The
// columns of each answer are beside what reads them, in answers.h.

// How much of the time is known, in steps of so many seconds from `from` on.
std::string CoverageSql(const Question& question, uint32_t step);
std::string KindsSql(const Question& question);

// How a query of samples counts each once.
enum class Doubles : uint8_t {
  kNone,   // no interval of the time was sent twice
  kMaybe,  // some were: their rows are compared
};

// The names of rows of a time line, the largest by `kind` first; then by the
// other kinds, where `kind` is empty in the question.
struct RowsWanted {
  By by = By::kAll;
  std::string_view kind;
  uint32_t rows = 0;
};
std::string RowNamesSql(const Question& question, Doubles doubles,
                        const RowsWanted& wanted);
// The values of these rows by kind and step; row 0 is all others.
struct CellsWanted {
  By by = By::kAll;
  uint32_t step = 0;
  std::span<const std::string> rows;
};
std::string CellsSql(const Question& question, Doubles doubles,
                     const CellsWanted& wanted);

// The stacks with the largest sums, at most so many.
std::string StackSumsSql(const Question& question, Doubles doubles,
                         uint32_t most);
// The sums of all stacks.
std::string WholeSumSql(const Question& question, Doubles doubles);
// The frames of these stacks.
std::string StacksSql(const Question& question,
                      std::span<const uint64_t> stacks);

// Names that samples have, and their sums, the largest first.
std::string NamesSql(const Question& question, Doubles doubles, By by,
                     uint32_t most);

}  // namespace profd::fleet
