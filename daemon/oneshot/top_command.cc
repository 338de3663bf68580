// SPDX-License-Identifier: Apache-2.0
#include "daemon/oneshot/top_command.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cmath>
#include <string>
#include <string_view>
#include <utility>

#include "daemon/base/now_ns.h"
#include "daemon/oneshot/common_options.h"
#include "daemon/oneshot/top_run.h"

namespace profd {
namespace {

constexpr double kLeastInterval = 0.2;
constexpr double kMostInterval = 60;
constexpr uint64_t kMostTables = 1'000'000'000;

constexpr std::string_view kTopExamples = R"(Examples:
  ksym-profile top                        what the machine does now
  ksym-profile top -p 1234                one process
  ksym-profile top --sort blocked         where threads wait
  ksym-profile top --batch 1 -w 5 > t.txt one table as text
)";

struct TopArguments {
  std::string pids;
  std::string tids;
  std::string view = "functions";
  std::string sort = "running";
  double interval_seconds = 1;
  int64_t window_seconds = 10;
  uint64_t tables = 0;
  TopOptions options;
};

CLI::App& AddTop(CLI::App& app, TopArguments& arguments) {
  CLI::App& top = *app.add_subcommand(
      "top",
      "Shows what threads do, by functions, commands or threads, in a table "
      "that goes on; ? has its keys");
  ProfileOptions& profile = arguments.options.profile;
  AddIdOptions(top, arguments.pids, arguments.tids);
  top.add_option("--cgroup", profile.capture.bpf.cgroup_path,
                 "Only processes in this cgroup (v2) and those below")
      ->type_name("PATH");
  top.add_option("-F,--frequency", profile.capture.rate.frequency_hz,
                 "Samples per second and CPU, and of each thread that waits "
                 "(default 99)")
      ->type_name("HZ");
  top.add_option("-d,--interval", arguments.interval_seconds,
                 "From one table to the next, 0.2 to 60 (default 1)")
      ->type_name("SECONDS");
  top.add_option("-w,--window", arguments.window_seconds,
                 fmt::format("The last seconds, which a table is of, 1 to {} "
                             "(default 10)",
                             kMostWindow.count()))
      ->type_name("SECONDS");
  top.add_option("--view", arguments.view, "The rows at first")
      ->type_name("functions|commands|threads");
  top.add_option("--sort", arguments.sort,
                 "The column that they are sorted by at first")
      ->type_name("running|runnable|blocked");
  top.add_option("--filter", arguments.options.state.filter,
                 "Only rows with this text, in any case")
      ->type_name("TEXT");
  top.add_option("-b,--batch", arguments.tables,
                 "Print so many tables as text instead, with 20 rows each")
      ->type_name("N");
  top.footer(std::string(kTopExamples));
  return top;
}

void DecideNumbers(const CLI::App& top, TopArguments& arguments) {
  TopOptions& options = arguments.options;
  const uint64_t rate = options.profile.capture.rate.frequency_hz;
  if (rate == 0 || rate > kNsPerSecond) {
    throw UsageError{fmt::format("-F must be from 1 to {}", kNsPerSecond)};
  }
  const double interval = arguments.interval_seconds;
  if (!(interval >= kLeastInterval && interval <= kMostInterval)) {
    throw UsageError{fmt::format("--interval must be from {} to {}",
                                 kLeastInterval, kMostInterval)};
  }
  options.interval = std::chrono::milliseconds(std::llround(interval * 1000));
  const std::chrono::seconds window(arguments.window_seconds);
  if (window < kLeastWindow || window > kMostWindow) {
    throw UsageError{fmt::format("--window must be from {} to {}",
                                 kLeastWindow.count(), kMostWindow.count())};
  }
  options.state.window = window;
  if (top.count("--batch") == 0) return;
  if (arguments.tables == 0 || arguments.tables > kMostTables) {
    throw UsageError{fmt::format("--batch must be from 1 to {}", kMostTables)};
  }
  options.batch = arguments.tables;
}

// Throws UsageError.
void DecideTop(const CLI::App& top, TopArguments& arguments) {
  TopOptions& options = arguments.options;
  RefuseEmpty(top, {"--pid", "--tid", "--cgroup"});
  DecideIds(arguments.pids, arguments.tids, options.profile.capture.bpf);
  const auto subject = ParseTopSubject(arguments.view);
  if (!subject) {
    throw UsageError{fmt::format(
        "--view '{}' is none of functions, commands, threads", arguments.view)};
  }
  options.state.subject = *subject;
  const auto state = ParseThreadState(arguments.sort);
  if (!state || *state == ThreadState::kParked) {
    throw UsageError{fmt::format(
        "--sort '{}' is none of running, runnable, blocked", arguments.sort)};
  }
  options.state.order.state = *state;
  DecideNumbers(top, arguments);
}

}  // namespace

void AddTopCommandTo(CLI::App& app) {
  TopArguments not_parsed;
  AddTop(app, not_parsed);
}

std::optional<int> RunTopCommand(int argc, const char* const* argv) {
  if (argc < 2 || std::string_view(argv[1]) != "top") return std::nullopt;
  TopArguments arguments;
  CLI::App app("Shows what threads do.", "ksym-profile");
  const CLI::App& top = AddTop(app, arguments);
  const auto status = ParseCommand(app, {argv, static_cast<size_t>(argc)},
                                   [&] { DecideTop(top, arguments); });
  if (status) return status;
  return RunTop(std::move(arguments.options));
}

}  // namespace profd
