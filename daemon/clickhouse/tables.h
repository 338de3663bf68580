// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <string_view>

namespace profd::clickhouse {

// The tables of a fleet (docs/fleet.md has them as well), in the SQL of
// ClickHouse 18.16 and later.

// Each makes a table that is missing.
extern const std::array<std::string_view, 3> kCreateTables;
// A setting that 18.16 needs for them, in the query of the URL.
inline constexpr std::string_view kCreateSetting =
    "allow_experimental_low_cardinality_type";

// Rows in RowBinary follow. The columns have the order in which Batch has them.
extern const std::string_view kInsertIntervals;
extern const std::string_view kInsertStacks;
extern const std::string_view kInsertSamples;

}  // namespace profd::clickhouse
