// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <CLI/CLI.hpp>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "daemon/history/selection.h"
#include "daemon/history/timeline.h"
#include "daemon/output/format.h"
#include "daemon/output/hot_spots.h"

namespace profd {

inline constexpr std::string_view kDefaultHistory =
    "/var/lib/ksym-profiled/history";
inline constexpr size_t kDefaultHistoryRows = 30;

// A command line with "history", as it was parsed.
struct HistoryArguments {
  std::string directory{kDefaultHistory};
  std::string from = "-15m";
  std::string to = "now";
  std::string before_from;
  std::string before_to;
  std::string output;
  std::string format;
  std::string by;
  std::string kind;
  size_t top = kDefaultHistoryRows;
  bool parked = false;
  bool list = false;
  bool functions = false;
  bool series = false;
  uint64_t step_s = 0;           // of the series; 0: so that it fits a screen
  history::Selection selection;  // its times are of --from and --to
  std::optional<history::Selection> before;
  std::optional<OutputFormat> target;  // nothing: a table
  HotSpotTable table;
  // For the views: --list, --functions and --series.
  history::TimelineBy series_by = history::TimelineBy::kAll;
  bool is_json = false;

  bool is_view() const { return list || functions || series; }
};

// Adds the command with its options, which set `arguments`.
CLI::App& AddHistory(CLI::App& app, HistoryArguments& arguments);

// Decides what the options mean together. Throws UsageError.
void DecideHistory(const CLI::App& command, HistoryArguments& arguments);

}  // namespace profd
