#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "daemon/output/options.h"
#include "daemon/output/output_buffer.h"
#include "daemon/profile/profile.h"
#include "ksym/base/result.h"

namespace profd {

enum class OutputFormat : uint8_t {
  kFolded,
  kText,
  kJson,
  kPprof,
  kFlamegraph,
  kSvg,
  kSpeedscope,
  kPerfScript,
};

// "folded", "text", "json", "pprof", "flamegraph", "svg", "speedscope" or
// "perf-script"; anything else is kInvalid and the message lists the formats
// there are.
ksym::Result<OutputFormat> ParseOutputFormat(std::string_view name);

// What the end of a file's name says: .folded, .txt, .json, .pb.gz, .pprof,
// .html, .svg, .speedscope.json or .perf; else nothing.
std::optional<OutputFormat> FormatOfExtension(std::string_view path);

// Writes the profile in one of the formats; see the function of each. The same
// samples give the same bytes, whatever order they come in. Fails as the sink
// does. Memory: folded, text and JSON some bits per frame of every stack; pprof
// and flame graph the result and about as much again.
[[nodiscard]] ksym::Status Write(const Profile& profile, OutputFormat format,
                                 const OutputOptions& options,
                                 OutputBuffer::Sink sink);

// The same as one text.
std::string Render(const Profile& profile, OutputFormat format,
                   const OutputOptions& options);

}  // namespace profd
