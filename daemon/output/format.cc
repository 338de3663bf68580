// SPDX-License-Identifier: Apache-2.0
#include "daemon/output/format.h"

#include <cassert>
#include <utility>

#include "daemon/profile/kind_select.h"

namespace profd {

ksym::Result<OutputFormat> ParseOutputFormat(std::string_view name) {
  if (const FormatRow* row = FindFormat(name)) return row->format;
  return ksym::Fail(ksym::ErrorCode::kInvalid,
                    "unknown format \"" + std::string(name) + "\" (there are " +
                        FormatList() + ")");
}

std::optional<OutputFormat> FormatOfExtension(std::string_view path) {
  if (const FormatRow* row = FindFormatOfPath(path)) return row->format;
  return std::nullopt;
}

ksym::Status Write(const Profile& profile, const FormatRow& format,
                   const OutputOptions& options, OutputBuffer::Sink sink) {
  OutputBuffer out(std::move(sink));
  if (format.has_kinds || !HasSeveralValues(profile)) {
    format.write(profile, options, out);
  } else {
    Profile first = profile;
    KeepFirstKind(first);
    format.write(first, options, out);
  }
  return out.Finish();
}

std::string Render(const Profile& profile, const FormatRow& format,
                   const OutputOptions& options) {
  std::string text;
  const ksym::Status written =
      Write(profile, format, options, [&](std::string_view piece) {
        text += piece;
        return ksym::Status();
      });
  assert(written);
  return text;
}

}  // namespace profd
