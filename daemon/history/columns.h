// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/history/tables.h"
#include "ksym/base/result.h"

namespace profd::history {

// Columns of a file or of a record: the texts with their sizes, and one for
// each member that a table's elements have.
inline constexpr size_t kColumns = 57;
// Files of the versions 1 to 6 of the format have the first so many.
inline constexpr std::array<size_t, 6> kColumnsOfVersions = {51, 55, 56,
                                                             56, 56, kColumns};
using Columns = std::array<std::string, kColumns>;
using ColumnViews = std::array<std::string_view, kColumns>;

// A reader may leave out what it does not need. Tables have no functions and no
// nodes without stacks, and all rows name node 0. For flames, which a file may
// store beside its columns, they have no nodes, series, rows, names of cgroups
// and counters.
enum class Content : uint8_t { kAll, kNoStacks, kFlames };
// Whether a column is none of those that are left out.
bool HasColumn(Content content, size_t column);

// What `tables` has beyond `from`, as columns. The rows beyond are sorted
// first.
Columns EncodeColumns(Tables& tables, const Sizes& from);

// How many elements there are at the most in columns of so many bytes: a number
// takes one or more.
Sizes MostElements(const std::array<size_t, kColumns>& column_bytes);
// The bytes of the texts.
inline constexpr size_t kTextColumn = 1;

// Appends what EncodeColumns() gave, where `tables` is what it was encoded
// from. The bytes may come from anyone: kCorrupt where anything points to what
// is not there, columns of one table differ in length, or a text is there
// twice; kLimit beyond what daemon/history/limits.h allows. After a failure
// nothing more may be appended, and the parts and rows are those from before.
// O(bytes).
// Columns that the content does not have are not looked at.
ksym::Status AppendColumns(const ColumnViews& columns, Tables& tables,
                           Content content = Content::kAll);

}  // namespace profd::history
