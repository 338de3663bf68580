#include "daemon/output/format.h"

#include <cassert>
#include <utility>

#include "daemon/output/flamegraph.h"
#include "daemon/output/folded.h"
#include "daemon/output/json.h"
#include "daemon/output/perf_script.h"
#include "daemon/output/pprof.h"
#include "daemon/output/speedscope.h"
#include "daemon/output/svg.h"
#include "daemon/output/text.h"

namespace profd {

ksym::Result<OutputFormat> ParseOutputFormat(std::string_view name) {
  if (name == "folded") return OutputFormat::kFolded;
  if (name == "text") return OutputFormat::kText;
  if (name == "json") return OutputFormat::kJson;
  if (name == "pprof") return OutputFormat::kPprof;
  if (name == "flamegraph") return OutputFormat::kFlamegraph;
  if (name == "svg") return OutputFormat::kSvg;
  if (name == "speedscope") return OutputFormat::kSpeedscope;
  if (name == "perf-script") return OutputFormat::kPerfScript;
  return ksym::Fail(
      ksym::ErrorCode::kInvalid,
      "unknown format \"" + std::string(name) +
          "\" (there are folded, text, json, pprof, flamegraph, svg, "
          "speedscope and perf-script)");
}

std::optional<OutputFormat> FormatOfExtension(std::string_view path) {
  if (path.ends_with(".folded")) return OutputFormat::kFolded;
  if (path.ends_with(".txt")) return OutputFormat::kText;
  if (path.ends_with(".speedscope.json")) return OutputFormat::kSpeedscope;
  if (path.ends_with(".json")) return OutputFormat::kJson;
  if (path.ends_with(".pb.gz") || path.ends_with(".pprof")) {
    return OutputFormat::kPprof;
  }
  if (path.ends_with(".html")) return OutputFormat::kFlamegraph;
  if (path.ends_with(".svg")) return OutputFormat::kSvg;
  if (path.ends_with(".perf")) return OutputFormat::kPerfScript;
  return std::nullopt;
}

ksym::Status Write(const Profile& profile, OutputFormat format,
                   const OutputOptions& options, OutputBuffer::Sink sink) {
  OutputBuffer out(std::move(sink));
  switch (format) {
    case OutputFormat::kFolded:
      WriteFolded(profile, options, out);
      break;
    case OutputFormat::kText:
      WriteText(profile, options, out);
      break;
    case OutputFormat::kJson:
      WriteJson(profile, options, out);
      break;
    case OutputFormat::kPprof:
      out.Write(RenderPprof(profile, options));
      break;
    case OutputFormat::kFlamegraph:
      out.Write(RenderFlamegraph(profile, options));
      break;
    case OutputFormat::kSvg:
      WriteSvg(profile, options, out);
      break;
    case OutputFormat::kSpeedscope:
      WriteSpeedscope(profile, options, out);
      break;
    case OutputFormat::kPerfScript:
      WritePerfScript(profile, options, out);
      break;
  }
  return out.Finish();
}

std::string Render(const Profile& profile, OutputFormat format,
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
