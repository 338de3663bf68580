// SPDX-License-Identifier: Apache-2.0
#include "daemon/oneshot/dump_command.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <string>
#include <string_view>
#include <utility>

#include "daemon/oneshot/common_options.h"
#include "daemon/oneshot/dump_run.h"
#include "daemon/oneshot/one_shot.h"
#include "daemon/oneshot/report_target.h"
#include "daemon/output/format.h"
#include "daemon/profile/sample_kind.h"

namespace profd {
namespace {

constexpr std::string_view kDumpExamples = R"(Examples:
  ksym-profile dump                       what every thread does now
  ksym-profile dump -p 1234               of one process
  ksym-profile dump -o threads.html       as a flame graph
)";

struct DumpArguments {
  std::string pids;
  std::string tids;
  std::string format;
  ProfileOptions options;
};

CLI::App& AddDump(CLI::App& app, DumpArguments& arguments) {
  CLI::App& dump = *app.add_subcommand(
      "dump",
      "Prints the stacks of all threads as they are now, and what they wait "
      "for");
  AddIdOptions(dump, arguments.pids, arguments.tids);
  AddTargetOptions(dump, arguments.options.output_path, arguments.format,
                   "text");
  dump.add_option("--value", arguments.options.value,
                  "What formats with one number show: threads (default), or "
                  "waited: how long")
      ->type_name("threads|waited");
  AddVerbosityOptions(dump, arguments.options);
  dump.footer(std::string(kDumpExamples));
  return dump;
}

// Throws UsageError.
void DecideDump(const CLI::App& dump, DumpArguments& arguments) {
  ProfileOptions& options = arguments.options;
  RefuseEmpty(dump, {"--pid", "--tid", "--output"});
  DecideIds(arguments.pids, arguments.tids, options.capture.bpf);
  DecideVerbosity(options);
  if (!options.value.empty() && options.value != ThreadKind().name &&
      options.value != WaitedKind().name) {
    throw UsageError{
        fmt::format("--value '{}' is none of threads, waited", options.value)};
  }
  const auto format =
      ChooseFormat(arguments.format, options.output_path, OutputFormat::kText);
  if (!format) throw UsageError{format.error().message()};
  options.format = *format;
  options.output.by = OutputOptions::By::kTid;
}

}  // namespace

void AddDumpCommandTo(CLI::App& app) {
  DumpArguments not_parsed;
  AddDump(app, not_parsed);
}

std::optional<int> RunDumpCommand(int argc, const char* const* argv) {
  if (argc < 2 || std::string_view(argv[1]) != "dump") return std::nullopt;
  DumpArguments arguments;
  CLI::App app("Prints what all threads do.", "ksym-profile");
  const CLI::App& dump = AddDump(app, arguments);
  const auto status = ParseCommand(app, {argv, static_cast<size_t>(argc)},
                                   [&] { DecideDump(dump, arguments); });
  if (status) return status;
  return RunDump(std::move(arguments.options));
}

}  // namespace profd
