// SPDX-License-Identifier: Apache-2.0
#include "daemon/output/format.h"

#include <fmt/format.h>

#include <cassert>
#include <utility>

#include "daemon/profile/kind_select.h"
#include "daemon/profile/parked.h"

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

ksym::Status ChooseKind(std::string_view name, const FormatRow& format,
                        Profile& profile) {
  if (name.empty() && format.kinds == FormatKinds::kFirst) {
    // A format of one kind shows time as a whole then, not one state of
    // several.
    SumThreadStates(profile);
  }
  auto shown = ShowKind(name, profile);
  if (!shown) return shown;
  if (!name.empty() && format.kinds == FormatKinds::kChoice) {
    KeepFirstKind(profile);
  }
  return {};
}

void ArrangeParked(ParkedStacks stacks, const FormatRow& format,
                   Profile& profile) {
  if (format.parked == FormatParked::kMarked) return;
  if (stacks == ParkedStacks::kOpen) {
    UnmarkParked(profile);
  } else if (format.parked == FormatParked::kOneFrame) {
    FoldParked(profile);
  }
}

ksym::Status Write(const Profile& profile, const FormatRow& format,
                   const OutputOptions& options, OutputBuffer::Sink sink) {
  OutputBuffer out(std::move(sink));
  const bool takes_all = format.kinds == FormatKinds::kAll ||
                         (format.kinds == FormatKinds::kChoice &&
                          profile.metadata.kinds.size() > 1) ||
                         !HasSeveralValues(profile);
  if (takes_all) {
    format.write(profile, options, out);
  } else {
    Profile first = profile;
    KeepFirstKind(first);
    format.write(first, options, out);
  }
  return out.Finish();
}

ksym::Result<std::string> RenderWithin(size_t max_bytes, const Profile& profile,
                                       OutputFormat format,
                                       const OutputOptions& options) {
  std::string text;
  const auto take = [&](std::string_view piece) {
    if (piece.size() > max_bytes - text.size()) {
      return ksym::Status(
          ksym::Fail(ksym::ErrorCode::kLimit,
                     fmt::format("as {} it would have more than {} MiB: ask "
                                 "for a shorter time, or for pprof",
                                 RowOf(format).name, max_bytes >> 20)));
    }
    text += piece;
    return ksym::Status();
  };
  if (auto written = Write(profile, format, options, take); !written) {
    return ksym::Fail(std::move(written.error()));
  }
  return text;
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
