// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/fleet/stack_frame.h"
#include "ksym/base/result.h"

namespace profd::fleet {

// The rows that the queries of question.h ask for. Whatever the bytes are, the
// result takes a few times their memory; kCorrupt: they are no such rows.

// A step of a time: how much of it all hosts together know.
struct CoverageRow {
  uint32_t step = 0;
  uint32_t first_unix_s = 0;  // the first interval's begin
  uint64_t end_unix_s = 0;    // the last interval's end
  uint64_t taken = 0;         // samples
  uint64_t lost = 0;
  uint64_t intervals = 0;
  bool has_doubles = false;  // an interval was sent several times
};
ksym::Result<std::vector<CoverageRow>> ReadCoverage(std::string_view rows);

struct KindRow {
  std::string name;
  std::string unit;
};
ksym::Result<std::vector<KindRow>> ReadKinds(std::string_view rows);

struct RowNames {
  uint64_t names = 0;  // of all
  std::vector<std::string> largest;
};
ksym::Result<RowNames> ReadRowNames(std::string_view rows);

struct Cell {
  uint32_t row = 0;  // 0: of the rest
  std::string_view kind;
  uint32_t step = 0;
  uint64_t value = 0;
};
// Texts are of `rows`.
ksym::Result<std::vector<Cell>> ReadCells(std::string_view rows);

struct StackSum {
  uint64_t stack = 0;
  std::string_view command = {};
  bool parked = false;
  uint64_t count = 0;
  uint64_t value = 0;
};
// Texts are of `rows`.
ksym::Result<std::vector<StackSum>> ReadStackSums(std::string_view rows);

struct WholeSum {
  uint64_t count = 0;
  uint64_t value = 0;
};
ksym::Result<WholeSum> ReadWholeSum(std::string_view rows);

// One by one: frames have some ten times the memory of their bytes. Those
// before a damaged one are used. Texts are of `rows`.
struct StoredStack {
  uint64_t stack = 0;
  std::vector<StackFrame> frames = {};  // from the root
};
ksym::Status ReadStacks(std::string_view rows,
                        const std::function<void(const StoredStack&)>& use);

struct NameSum {
  std::string name;
  uint64_t count = 0;
  uint64_t value = 0;
};
ksym::Result<std::vector<NameSum>> ReadNameSums(std::string_view rows);

}  // namespace profd::fleet
