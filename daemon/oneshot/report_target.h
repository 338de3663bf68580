// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "daemon/output/format.h"
#include "ksym/base/result.h"

namespace profd {

// Whether -o names no file: "", or "-".
bool IsStdout(std::string_view path);

// The format that the end of a file's name says. kInvalid: it says none.
ksym::Result<OutputFormat> FormatOfFile(std::string_view path);

// The format that --format names, if it is given; else that of the file, or for
// stdout `of_stdout`. kInvalid: there is no such one.
ksym::Result<OutputFormat> ChooseFormat(std::string_view name,
                                        std::string_view path,
                                        OutputFormat of_stdout);

// Bytes that are no text may put a terminal into any state: kInvalid if such
// ones would go to one.
ksym::Status CheckTerminal(std::string_view path, OutputFormat format);

}  // namespace profd
