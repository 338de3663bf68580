// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "ksym/base/result.h"

namespace profd {

// Prints "ksym-profile: TEXT" to stderr, a line per line of the text. What
// could change the line's meaning or reach the terminal as a command is
// replaced (ksym::AppendPrintable): messages quote arguments, paths and names.
// A stderr that cannot be written is ignored: the report matters more.
void PrintMessage(std::string_view text);

// One line that says what is wrong with the arguments, whatever those that it
// quotes have in them, and where there is help.
std::string UsageLine(std::string_view why);

// Print such a line, or what else went wrong; return the exit status.
int ReportUsage(std::string_view why);
int ReportFailure(const ksym::Error& error);

// Prints what was asked for, as by --help, to stdout. Returns the exit status.
int PrintToStdout(const std::string& text);

}  // namespace profd
