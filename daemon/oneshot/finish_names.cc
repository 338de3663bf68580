// SPDX-License-Identifier: Apache-2.0
#include "daemon/oneshot/finish_names.h"

#include <fmt/format.h>

#include <chrono>
#include <string>
#include <utility>

#include "daemon/naming/line_files.h"
#include "daemon/naming/source_lines.h"
#include "daemon/oneshot/unwind_options.h"

namespace profd {
namespace {

void FindLines(const ProfileOptions& options, const NameSources& sources,
               Profile& profile, Progress& progress) {
  LineFiles files(
      *sources.symbolizer,
      {.cache_directory = CacheDirectory(),
       .deadline = std::chrono::steady_clock::now() + options.symbol_timeout,
       .kernel = {.release = profile.metadata.kernel_release,
                  .build_ids = sources.kernel_build_ids}});
  SourceLineOptions wanted;
  wanted.kernel = sources.kernel;
  if (options.inlines) wanted.inlines = SourceLineOptions::Inlines::kShow;
  if (options.lines) wanted.lines = SourceLineOptions::Lines::kShow;
  if (!options.demangle) {
    wanted.demangle = ksym::SymbolizerOptions::Demangle::kOff;
  }
  const SourceLineCounts counts = AddSourceLines(files, wanted, profile);
  for (std::string& warning : files.Warnings()) {
    profile.metadata.warnings.push_back(std::move(warning));
  }
  if (!options.verbose) return;
  const LineFileCounts& made = files.counts();
  progress.Say(fmt::format(
      "lines: {} of {} different user frames, {} inlined frames; {} files from "
      "the cache, {} converted in {:.1f} ms, {} without debug data, {} late, "
      "{} failed",
      counts.found, counts.frames, counts.inlined, made.from_cache,
      made.converted, made.milliseconds, made.without_debug_data, made.late,
      made.failed));
}

}  // namespace

Profile FinishNames(Profile profile, const ProfileOptions& options,
                    NameSources sources, Progress& progress) {
  const bool wants_more =
      options.inlines || options.lines || options.debuginfod;
  if (sources.symbolizer == nullptr) {
    if (wants_more) {
      profile.metadata.warnings.emplace_back(
          "debug data were not read, as names were not found in time");
    }
    return profile;
  }
  sources.debug_files.BeginFetching(*sources.symbolizer, profile);
  // While servers may be asked: the files with lines are theirs in part.
  if (options.inlines || options.lines) {
    FindLines(options, sources, profile, progress);
  }
  sources.debug_files.EndFetching(*sources.symbolizer, profile);
  profile.symbol_tables_evicted =
      sources.symbolizer->statistics().files_evicted;
  return profile;
}

}  // namespace profd
