// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace profd::fleet {

// A text as a literal of ClickHouse's SQL, quotes included. Whatever bytes it
// has, nothing of it is SQL: letters, digits and a few signs stand for
// themselves, every other byte is "\xHH".
void AppendSqlText(std::string_view text, std::string& sql);
std::string SqlText(std::string_view text);

}  // namespace profd::fleet
