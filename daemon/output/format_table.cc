// SPDX-License-Identifier: Apache-2.0
#include "daemon/output/format_table.h"

#include <algorithm>
#include <vector>

#include "daemon/output/flamegraph.h"
#include "daemon/output/folded.h"
#include "daemon/output/json.h"
#include "daemon/output/otlp.h"
#include "daemon/output/perf_script.h"
#include "daemon/output/pprof.h"
#include "daemon/output/speedscope.h"
#include "daemon/output/svg.h"
#include "daemon/output/text.h"
#include "ksym/base/word_list.h"

namespace profd {
namespace {

constexpr std::string_view kPlainText = "text/plain; charset=utf-8";
constexpr std::string_view kJsonText = "application/json";

void WritePprof(const Profile& profile, const OutputOptions& options,
                OutputBuffer& out) {
  out.Write(RenderPprof(profile, options));
}

void WriteOtlp(const Profile& profile, const OutputOptions& options,
               OutputBuffer& out) {
  out.Write(RenderOtlp(profile, options));
}

void WriteFlamegraph(const Profile& profile, const OutputOptions& options,
                     OutputBuffer& out) {
  out.Write(RenderFlamegraph(profile, options));
}

constexpr auto kRows = std::to_array<FormatRow>({
    {.format = OutputFormat::kFolded,
     .name = "folded",
     .extensions = {".folded"},
     .content_type = kPlainText,
     .is_readable = true,
     .is_for_files = true,
     .sentence = "a line per distinct stack, for flame graph tools",
     .write = &WriteFolded},
    {.format = OutputFormat::kJson,
     .name = "json",
     .extensions = {".json"},
     .content_type = kJsonText,
     .is_readable = true,
     .has_threads = true,
     .is_for_files = true,
     .kinds = FormatKinds::kAll,
     .parked = FormatParked::kMarked,
     .sentence = "all that is known, for programs",
     .write = &WriteJson},
    {.format = OutputFormat::kText,
     .name = "text",
     .extensions = {".txt"},
     .content_type = kPlainText,
     .sentence = "stacks, hottest first, for people",
     .write = &WriteText},
    {.format = OutputFormat::kPprof,
     .name = "pprof",
     .extensions = {".pb.gz", ".pprof"},
     .content_type = "application/octet-stream",
     .is_text = false,
     .is_readable = true,
     .has_threads = true,
     .is_for_files = true,
     .kinds = FormatKinds::kAll,
     .parked = FormatParked::kMarked,
     .sentence = "a gzipped protocol buffer, for pprof and profile stores",
     .write = &WritePprof},
    {.format = OutputFormat::kOtlp,
     .name = "otlp",
     .extensions = {".otlp"},
     .content_type = "application/x-protobuf",
     .is_text = false,
     .has_threads = true,
     .is_for_files = true,
     .kinds = FormatKinds::kAll,
     .parked = FormatParked::kMarked,
     .sentence = "OpenTelemetry's ProfilesData, for its collectors",
     .write = &WriteOtlp},
    {.format = OutputFormat::kFlamegraph,
     .name = "flamegraph",
     .extensions = {".html"},
     .content_type = "text/html; charset=utf-8",
     .kinds = FormatKinds::kChoice,
     .parked = FormatParked::kBelow,
     .sentence = "a page with a flame graph that needs nothing else",
     .write = &WriteFlamegraph},
    {.format = OutputFormat::kSvg,
     .name = "svg",
     .extensions = {".svg"},
     .content_type = "image/svg+xml",
     .sentence = "the flame graph as a picture",
     .write = &WriteSvg},
    {.format = OutputFormat::kSpeedscope,
     .name = "speedscope",
     .extensions = {".speedscope.json"},
     .content_type = kJsonText,
     .sentence = "for speedscope",
     .write = &WriteSpeedscope},
    {.format = OutputFormat::kPerfScript,
     .name = "perf-script",
     .extensions = {".perf"},
     .content_type = kPlainText,
     .is_readable = true,
     .sentence = "as perf script prints it, for the tools that read that",
     .write = &WritePerfScript},
});

}  // namespace

std::span<const FormatRow> FormatRows() { return kRows; }

const FormatRow& RowOf(OutputFormat format) {
  return *std::ranges::find(kRows, format, &FormatRow::format);
}

const FormatRow* FindFormat(std::string_view name,
                            std::span<const FormatRow> rows) {
  const auto row = std::ranges::find(rows, name, &FormatRow::name);
  return row == rows.end() ? nullptr : &*row;
}

const FormatRow* FindFormatOfPath(std::string_view path,
                                  std::span<const FormatRow> rows) {
  const FormatRow* best = nullptr;
  size_t best_size = 0;
  for (const FormatRow& row : rows) {
    for (const std::string_view extension : row.extensions) {
      // One format's extension may end like another one's.
      if (extension.size() <= best_size || !path.ends_with(extension)) continue;
      best = &row;
      best_size = extension.size();
    }
  }
  return best;
}

std::span<const std::string_view> FileFormats() {
  static const std::vector<std::string_view> kNames = [] {
    std::vector<std::string_view> found;
    for (const FormatRow& row : kRows) {
      if (row.is_for_files) found.push_back(row.name);
    }
    return found;
  }();
  return kNames;
}

std::string FormatChoices() {
  std::string text;
  for (const FormatRow& row : kRows) {
    if (!text.empty()) text += '|';
    text += row.name;
  }
  return text;
}

std::string FormatList() {
  std::vector<std::string_view> names;
  names.reserve(kRows.size());
  for (const FormatRow& row : kRows) names.push_back(row.name);
  return ksym::Enumerate(names);
}

std::string ExtensionList() {
  std::vector<std::string_view> extensions;
  extensions.reserve(kRows.size());
  for (const FormatRow& row : kRows) extensions.push_back(row.extensions[0]);
  return ksym::Enumerate(extensions);
}

}  // namespace profd
