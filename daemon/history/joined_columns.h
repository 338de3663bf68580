// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "ksym/base/result.h"

namespace profd::history {

// Columns as one text: each behind its size.
std::string JoinColumns(std::span<const std::string> columns);
// kCorrupt: the text is not that of so many columns.
ksym::Status SplitColumns(std::string_view text,
                          std::span<std::string_view> columns);

}  // namespace profd::history
