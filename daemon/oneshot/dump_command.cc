// SPDX-License-Identifier: Apache-2.0
#include "daemon/oneshot/dump_command.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <string>
#include <string_view>
#include <utility>

#include "daemon/oneshot/dump_run.h"
#include "daemon/oneshot/messages.h"
#include "daemon/oneshot/one_shot.h"
#include "daemon/oneshot/raw_options.h"
#include "daemon/output/format.h"
#include "ksym/base/printable.h"

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
  std::string output;
  std::string format;
  std::string value;
  bool quiet = false;
  bool verbose = false;
};

CLI::App& AddDump(CLI::App& app, DumpArguments& arguments) {
  CLI::App& dump = *app.add_subcommand(
      "dump",
      "Prints the stacks of all threads as they are now, and what they wait "
      "for");
  dump.add_option("-p,--pid", arguments.pids, "Only these processes")
      ->type_name("LIST");
  dump.add_option("-L,--tid", arguments.tids, "Only these threads")
      ->type_name("LIST");
  dump.add_option("-o,--output", arguments.output,
                  "Write to FILE, in the format that its extension names; "
                  "else to stdout")
      ->type_name("FILE");
  dump.add_option("--format", arguments.format,
                  "The format, whatever FILE is called (default text)")
      ->type_name(FormatChoices());
  dump.add_option("--value", arguments.value,
                  "What formats with one number show: threads (default), or "
                  "waited: how long")
      ->type_name("threads|waited");
  dump.add_flag("-q,--quiet", arguments.quiet, "Nothing on stderr but errors");
  dump.add_flag("-v,--verbose", arguments.verbose,
                "Say what is done, with libbpf's messages");
  dump.footer(std::string(kDumpExamples));
  return dump;
}

OutputFormat DecideFormat(const DumpArguments& arguments) {
  if (!arguments.format.empty()) {
    const auto format = ParseOutputFormat(arguments.format);
    if (!format) throw UsageError{"--format: " + format.error().message()};
    return *format;
  }
  if (arguments.output.empty() || arguments.output == "-") {
    return OutputFormat::kText;
  }
  if (const auto format = FormatOfExtension(arguments.output)) return *format;
  throw UsageError{
      fmt::format("-o {}: its name does not say the format: there are {}, or "
                  "give --format",
                  arguments.output, ExtensionList())};
}

// Throws UsageError.
ProfileOptions DecideDump(const CLI::App& dump,
                          const DumpArguments& arguments) {
  ProfileOptions options;
  BpfConfig& bpf = options.capture.bpf;
  for (const char* name : {"--pid", "--tid", "--output"}) {
    if (dump.count(name) > 0 && dump[name]->as<std::string>().empty()) {
      throw UsageError{fmt::format("{}: it is empty", name)};
    }
  }
  bpf.pids = ParseIds("-p", arguments.pids);
  bpf.tids = ParseIds("-L", arguments.tids);
  if (!bpf.pids.empty() && !bpf.tids.empty()) {
    throw UsageError{"-p and -L contradict each other"};
  }
  if (arguments.quiet && arguments.verbose) {
    throw UsageError{"-q and -v contradict each other"};
  }
  if (!arguments.value.empty() && arguments.value != "threads" &&
      arguments.value != "waited") {
    throw UsageError{fmt::format("--value '{}' is none of threads, waited",
                                 arguments.value)};
  }
  options.format = DecideFormat(arguments);
  options.output_path = arguments.output;
  options.output.by = OutputOptions::By::kTid;
  options.value = arguments.value;
  options.quiet = arguments.quiet;
  options.verbose = arguments.verbose;
  bpf.verbosity = arguments.verbose ? Verbosity::kVerbose : Verbosity::kNormal;
  return options;
}

int RefuseUsage(std::string_view why) {
  std::string printable;
  ksym::AppendPrintable(why, printable);
  PrintMessage(printable + " (see --help)");
  return kExitUsage;
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
  ProfileOptions options;
  try {
    app.parse(argc, argv);
    options = DecideDump(dump, arguments);
  } catch (const CLI::CallForHelp&) {
    return PrintText(app.help());
  } catch (const CLI::ParseError& error) {
    return RefuseUsage(error.what());
  } catch (const UsageError& error) {
    return RefuseUsage(error.message);
  }
  return RunDump(std::move(options));
}

}  // namespace profd
