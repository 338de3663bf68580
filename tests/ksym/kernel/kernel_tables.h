// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "ksym/base/result.h"
#include "ksym/base/unique_fd.h"
#include "ksym/kernel/kernel_symbol_source.h"

namespace ksym_test {

// A descriptor that reads `text` from its start.
ksym::UniqueFd FdOf(std::string_view text);

// The table that a listing makes, which must be one.
ksym::KernelSymbolSource TableOf(std::string_view listing);

// The table of a Debian 6.1 kernel with 73 modules and data symbols.
std::string DebianTable();

// The running kernel's table; kPermission when it hides the addresses.
ksym::Result<std::string> RunningTable();

struct TableSymbol {
  uint64_t address = 0;
  char type = 0;
  std::string name;
  std::string module;

  friend auto operator<=>(const TableSymbol&, const TableSymbol&) = default;
};

// The lines of a table, by address, then by the alias rule, then by module.
std::vector<TableSymbol> SortedSymbols(std::string_view text);

// What a lookup must answer.
struct ReferenceRange {
  uint64_t start = 0;
  uint64_t end = 0;
  TableSymbol symbol;    // the answer, by the alias rule
  bool answers = false;  // false: nothing is in [start, end)
  bool in_prefix = false;
};

// All addresses from the first symbol on, cut into ranges with one answer
// each: the slow and simple way, to compare with.
std::vector<ReferenceRange> ReferenceRanges(
    const std::vector<TableSymbol>& symbols);

}  // namespace ksym_test
