// SPDX-License-Identifier: Apache-2.0
#include "daemon/oneshot/options.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstring>
#include <memory>
#include <string_view>
#include <utility>

#include "daemon/oneshot/common_options.h"
#include "daemon/oneshot/dump_command.h"
#include "daemon/oneshot/file_commands.h"
#include "daemon/oneshot/history_command.h"
#include "daemon/oneshot/messages.h"
#include "daemon/oneshot/raw_options.h"
#include "daemon/oneshot/top_command.h"
#include "daemon/oneshot/ui_command.h"
#include "ksym/cli/completion.h"

namespace profd {
namespace {

constexpr std::string_view kExamples = R"(Examples:
  ksym-profile 10                         the hottest functions, as a table
  ksym-profile -o cpu.html --open 10s     a flame graph in the browser
  ksym-profile -F 99 10 > out.folded      folded stacks of the whole machine
  ksym-profile -p 1234 -o out.json 5      one process, as JSON
  ksym-profile -o out.folded -- make      a command and its children
  ksym-profile -K -C 0-3 10               kernel stacks on four CPUs
  ksym-profile --off-cpu -p 1234 10       where a process waits, and why
)";

void AddSamplingOptions(CLI::App& app, RawOptions& raw,
                        ProfileOptions& options) {
  app.add_option("DURATION", raw.duration,
                 "How long to sample: seconds, or with a unit such as 10s, 2m, "
                 "1h; none: until Ctrl-C");
  app.add_option("-F,--frequency", raw.frequency_hz,
                 "Samples per second and CPU (default 99)")
      ->type_name("HZ");
  app.add_option("-c,--count", raw.count_period,
                 "Sample every N events instead (of cpu-clock: nanoseconds)")
      ->type_name("N");
  app.add_option("-e,--event", options.capture.event,
                 "Event to sample on (default: cycles, or cpu-clock where "
                 "there is no PMU)")
      ->type_name("EVENT");
  AddIdOptions(app, raw.pids, raw.tids);
  app.add_option("-C,--cpu", raw.cpus, "Only these CPUs, such as 0-3,8")
      ->type_name("LIST");
  auto& bpf = options.capture.bpf;
  app.add_option("--cgroup", bpf.cgroup_path,
                 "Only processes in this cgroup (v2) and those below")
      ->type_name("PATH");
  app.add_option("--cgroupmap", bpf.cgroup_map_path,
                 "Only cgroups whose ids are in this pinned BPF map")
      ->type_name("PATH");
  app.add_option("--mntnsmap", bpf.mntns_map_path,
                 "Only mount namespaces that are in this pinned BPF map")
      ->type_name("PATH");
  app.add_flag("-U,--user-stacks-only", raw.user_only, "No kernel stacks");
  app.add_flag("-K,--kernel-stacks-only", raw.kernel_only, "No user stacks");
  app.add_flag("--off-cpu", raw.off_cpu,
               "Sample threads that wait, for a CPU or for anything else, "
               "instead of those that run");
  app.add_flag("--wall", raw.wall,
               "Sample all of threads' time: running, runnable and blocked");
  app.add_flag("--wakers", raw.wakers,
               "With --off-cpu or --wall: who woke each thread that was "
               "blocked, with the whole stack");
  // For tests: what is chosen by what the kernel can do.
  app.add_option("--wait-program", raw.wait_program,
                 "auto, exit, interrupt or old")
      ->group("");
  app.add_flag("-I,--include-idle", bpf.include_idle,
               "Sample idle CPUs, too, as 'swapper'");
}

void AddPriorityOption(CLI::App& app, RawOptions& raw) {
  app.add_option("--own-priority", raw.own_priority,
                 "How ksym-profile itself is scheduled, within a bound: "
                 "realtime, nice, normal, or auto: the first that is permitted")
      ->type_name("auto|realtime|nice|normal");
}

void AddStorageOptions(CLI::App& app, RawOptions& raw) {
  app.add_option("--stack-storage-size", raw.stack_entries,
                 "Distinct stacks between two drains (default: the samples of "
                 "20 s, 4096 to 32768; with --stack-map=stackid 16384)")
      ->type_name("N");
  app.add_option("--hash-storage-size", raw.hash_entries,
                 "Distinct counts between two drains (default: the samples of "
                 "20 s, 4096 to 40960)")
      ->type_name("N");
  app.add_option("--max-stack-depth", raw.max_stack_depth,
                 fmt::format("Frames of a stack, 1 to {} (default 127)",
                             kMaxStackDepth))
      ->type_name("N");
  app.add_option("--stack-map", raw.stack_map,
                 "Where stacks are kept: exact, stackid, or auto: exact where "
                 "the kernel has BPF ring buffers")
      ->type_name("exact|stackid|auto");
}

void AddOutputOptions(CLI::App& app, RawOptions& raw, ProfileOptions& options) {
  app.add_option("-o,--output", options.output_path,
                 "Write to FILE, in the format that its extension names (" +
                     ExtensionList() + ")")
      ->type_name("FILE");
  app.add_flag("--open", options.open,
               "Show FILE when it is written, with xdg-open");
  app.add_option(
         "--format", raw.format,
         "The format, whatever FILE is called; markup: addresses, to be "
         "named elsewhere (default: by FILE, else folded; at a terminal a "
         "table)")
      ->type_name(FormatChoices() + "|markup");
  app.add_flag("-f,--folded", raw.folded, "The same as --format folded");
  app.add_option("--by", raw.by,
                 "What stacks start with: comm, pid or tid (default comm)")
      ->type_name("comm|pid|tid");
  app.add_option("--value", options.value,
                 "Which kind of samples is shown, where there are several "
                 "(default: the first; of --off-cpu and --wall their sum)")
      ->type_name("KIND");
  app.add_flag("--parked", options.parked,
               "Show the stacks of threads that wait at one place nearly all "
               "the time, which pictures and text have as one frame else");
  app.add_flag("-d,--delimited", options.output.delimiter,
               "Put a mark between user and kernel frames");
  app.add_flag("-a,--annotations", options.output.annotations,
               "Append _[k] to kernel and _[i] to inlined frames (folded)");
  app.add_flag("-A,--addresses", options.output.addresses,
               "Show run-time addresses (text, JSON)");
  app.add_option("--raw", options.raw_path,
                 "Also write the unnamed capture, for --replay")
      ->type_name("FILE");
  app.add_option("--replay", options.replay_path,
                 "Name and print a capture that --raw wrote; needs no "
                 "privilege")
      ->type_name("FILE");
  AddVerbosityOptions(app, options);
  app.add_flag("--strict", options.strict, "Exit with 3 if anything was lost");
}

void AddSymbolOptions(CLI::App& app, RawOptions& raw, ProfileOptions& options) {
  app.add_option("--kernel-symbols", options.kernel_symbols_path,
                 "Take kernel names from FILE: a copy of /proc/kallsyms, or "
                 "what gen_ksym wrote")
      ->type_name("FILE");
  app.add_flag("--no-demangle", raw.no_demangle,
               "Print C++, Rust and D names as they are in the file");
  app.add_flag("--inlines", options.inlines,
               "Show calls that were inlined, by the programs' debug data");
  app.add_flag("--lines", options.lines,
               "Show source files and lines (text, JSON, pprof, flamegraph)");
  app.add_flag("--debuginfod", options.debuginfod,
               "Fetch debug files of stripped programs from the servers of "
               "DEBUGINFOD_URLS when the capture is over");
  app.add_option("--symbol-timeout", raw.symbol_timeout_seconds,
                 "Wait for those servers, and read debug data, no longer than "
                 "this (default 10)")
      ->type_name("SECONDS");
  app.add_option("--symbol-cache", raw.symbol_cache_mib,
                 "Keep no more symbol tables in memory than this (default 256)")
      ->type_name("MB");
}

// CLI11 knows nothing of what follows "--".
class UsageOfBothForms : public CLI::Formatter {
 public:
  std::string make_usage(const CLI::App*, std::string) const override {
    return "Usage: ksym-profile [OPTIONS] [DURATION]\n"
           "       ksym-profile [OPTIONS] -- COMMAND [ARG...]\n"
           "       ksym-profile top [OPTIONS] (a table that goes on)\n"
           "       ksym-profile dump [OPTIONS] (what all threads do now)\n"
           "       ksym-profile history [OPTIONS] (what the service kept)\n"
           "       ksym-profile ui [OPTIONS] (the same in a browser)\n"
           "       ksym-profile report|diff|convert ... (these have a --help "
           "of their own)\n\n";
  }
};

}  // namespace

ParsedCommandLine ParseCommandLine(int argc, const char* const* argv) {
  const char* const* end = argv + argc;
  const char* const* dashes = std::find_if(
      argv, end, [](const char* text) { return std::strcmp(text, "--") == 0; });
  CLI::App app("Samples stacks of the whole machine and counts them.",
               "ksym-profile");
  app.formatter(std::make_shared<UsageOfBothForms>());
  app.footer(std::string(kExamples));
  app.set_version_flag("--version", "ksym-profile " KSYM_VERSION);
  RawOptions raw;
  ProfileOptions options;
  AddSamplingOptions(app, raw, options);
  AddStorageOptions(app, raw);
  raw.unwind.AddTo(app);
  raw.runtimes.AddTo(app);
  AddPriorityOption(app, raw);
  AddOutputOptions(app, raw, options);
  AddSymbolOptions(app, raw, options);
  const auto commands = FileCommandTable();
  AddDumpCommandTo(*commands);
  AddTopCommandTo(*commands);
  AddHistoryCommandTo(*commands);
  AddUiCommandTo(*commands);
  ksym::AddCompletionOption(app, commands.get());

  ParsedCommandLine parsed;
  try {
    app.parse(static_cast<int>(dashes - argv), argv);
    if (dashes != end) {
      options.command.assign(dashes + 1, end);
      if (options.command.empty()) {
        throw UsageError{"there is no COMMAND after --"};
      }
    }
    DecideOptions(app, raw, options);
    parsed.options = std::move(options);
  } catch (const CLI::CallForHelp&) {
    parsed.output_text = app.help();
  } catch (const CLI::CallForVersion& version) {
    parsed.output_text = std::string(version.what()) + "\n";
  } catch (const CLI::ParseError& error) {
    parsed.exit_status = 2;
    parsed.error_text = error.what();
  } catch (const UsageError& error) {
    parsed.exit_status = 2;
    parsed.error_text = error.message;
  }
  if (parsed.exit_status == 2) {
    parsed.error_text = UsageLine(parsed.error_text);
  }
  return parsed;
}

}  // namespace profd
