#include "daemon/output/format.h"

#include "daemon/output/flamegraph.h"
#include "daemon/output/folded.h"
#include "daemon/output/json.h"
#include "daemon/output/pprof.h"
#include "daemon/output/text.h"

namespace profd {

ksym::Result<OutputFormat> ParseOutputFormat(std::string_view name) {
  if (name == "folded") return OutputFormat::kFolded;
  if (name == "text") return OutputFormat::kText;
  if (name == "json") return OutputFormat::kJson;
  if (name == "pprof") return OutputFormat::kPprof;
  if (name == "flamegraph") return OutputFormat::kFlamegraph;
  return ksym::Fail(
      ksym::ErrorCode::kInvalid,
      "unknown format \"" + std::string(name) +
          "\" (there are folded, text, json, pprof and flamegraph)");
}

std::optional<OutputFormat> FormatOfExtension(std::string_view path) {
  if (path.ends_with(".folded")) return OutputFormat::kFolded;
  if (path.ends_with(".txt")) return OutputFormat::kText;
  if (path.ends_with(".json")) return OutputFormat::kJson;
  if (path.ends_with(".pb.gz") || path.ends_with(".pprof")) {
    return OutputFormat::kPprof;
  }
  if (path.ends_with(".html")) return OutputFormat::kFlamegraph;
  return std::nullopt;
}

std::string Render(const Profile& profile, OutputFormat format,
                   const OutputOptions& options) {
  switch (format) {
    case OutputFormat::kFolded:
      return RenderFolded(profile, options);
    case OutputFormat::kText:
      return RenderText(profile, options);
    case OutputFormat::kJson:
      return RenderJson(profile, options);
    case OutputFormat::kPprof:
      return RenderPprof(profile, options);
    case OutputFormat::kFlamegraph:
      return RenderFlamegraph(profile, options);
  }
  return {};
}

}  // namespace profd
