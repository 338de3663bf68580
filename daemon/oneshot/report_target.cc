// SPDX-License-Identifier: Apache-2.0
#include "daemon/oneshot/report_target.h"

#include <fmt/format.h>
#include <unistd.h>

#include <utility>

namespace profd {

using ksym::ErrorCode;
using ksym::Fail;

bool IsStdout(std::string_view path) { return path.empty() || path == "-"; }

ksym::Result<OutputFormat> FormatOfFile(std::string_view path) {
  if (const auto format = FormatOfExtension(path)) return *format;
  return Fail(ErrorCode::kInvalid,
              fmt::format("-o {}: its name does not say the format: there are "
                          "{}, or give --format",
                          path, ExtensionList()));
}

ksym::Result<OutputFormat> ChooseFormat(std::string_view name,
                                        std::string_view path,
                                        OutputFormat of_stdout) {
  if (!name.empty()) {
    auto format = ParseOutputFormat(name);
    if (format) return format;
    return Fail(ErrorCode::kInvalid, "--format: " + format.error().message());
  }
  if (IsStdout(path)) return of_stdout;
  return FormatOfFile(path);
}

ksym::Status CheckTerminal(std::string_view path, OutputFormat format) {
  const FormatRow& row = RowOf(format);
  if (row.is_text || !IsStdout(path) || ::isatty(STDOUT_FILENO) == 0) return {};
  return Fail(ErrorCode::kInvalid,
              fmt::format("stdout is a terminal and {} is not text: give -o "
                          "FILE",
                          row.name));
}

}  // namespace profd
