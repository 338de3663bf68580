// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace profd {

// Prints "ksym-profile: TEXT" to stderr, a line per line of the text. What
// could change the line's meaning or reach the terminal as a command is
// replaced (ksym::AppendPrintable): messages quote arguments, paths and names.
// A stderr that cannot be written is ignored: the report matters more.
void PrintMessage(std::string_view text);

}  // namespace profd
