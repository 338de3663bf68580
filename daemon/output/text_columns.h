// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace profd {

// The columns that a printable text takes on a terminal, or more: characters
// from U+1000 on count as wide ones.
size_t ColumnsOf(std::string_view text);

// "std::sort<>()" for "std::sort<int*>(int*, int*)": nothing between brackets
// that hold arguments; the name as it is where brackets do not match.
std::string WithoutArguments(std::string_view name);

// `name` if it fits so many columns. Else WithoutArguments(); and where that
// does not fit its end, which tells most: "..map<>::insert()". Never wider than
// `columns`.
std::string FitName(std::string_view name, size_t columns);

// The beginning of a line that is wider than so many columns, with "..".
std::string CutLine(std::string_view line, size_t columns);

// Appends the text and spaces up to so many columns; one that is wider is not
// cut.
void AppendPadded(std::string_view text, size_t columns, std::string& out);

}  // namespace profd
