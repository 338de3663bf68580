#include "daemon/oneshot/options.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <memory>
#include <string_view>
#include <utility>

#include "daemon/oneshot/file_commands.h"
#include "daemon/oneshot/unwind_options.h"
#include "ksym/base/printable.h"
#include "ksym/base/text.h"
#include "ksym/cli/completion.h"

namespace profd {
namespace {

constexpr double kMaxDurationSeconds = 1e9;
// More entries would be refused by the kernel or take gigabytes.
constexpr uint64_t kMaxEntries = uint64_t{1} << 26;
constexpr double kMaxSymbolTimeoutSeconds = 3600;
constexpr uint64_t kMaxCacheMib = uint64_t{1} << 20;
constexpr uint32_t kMaxPid = 1u << 22;  // PID_MAX_LIMIT of 64-bit kernels

constexpr std::string_view kExamples = R"(Examples:
  ksym-profile -F 99 10 > out.folded      the whole machine for ten seconds
  ksym-profile -p 1234 -o out.json 5      one process, as JSON
  ksym-profile -o out.folded -- make      a command and its children
  ksym-profile -K -C 0-3 10               kernel stacks on four CPUs
)";

// The texts of the options that need more than CLI11 can check.
struct RawOptions {
  std::string duration;
  std::string pids;
  std::string tids;
  std::string cpus;
  std::string format;
  std::string by = "comm";
  std::string stack_map = "auto";
  uint64_t frequency_hz = 0;
  uint64_t count_period = 0;
  uint64_t stack_entries = 0;
  uint64_t hash_entries = 0;
  uint32_t max_stack_depth = 127;
  bool user_only = false;
  bool kernel_only = false;
  bool folded = false;
  bool no_demangle = false;
  UnwindOptions unwind;
  double symbol_timeout_seconds = 10;
  uint64_t symbol_cache_mib = 256;
};

// A usage error; caught in ParseCommandLine and nowhere else.
struct UsageError {
  std::string message;
};

[[noreturn]] void Refuse(std::string message) {
  throw UsageError{std::move(message)};
}

std::vector<uint32_t> ParseIds(std::string_view option, std::string_view text) {
  std::vector<uint32_t> ids;
  if (text.empty()) return ids;
  std::string_view rest = text;
  while (!rest.empty()) {
    const bool dangling =
        rest.back() == ',' && rest.find(',') + 1 == rest.size();
    const std::string_view part = ksym::TakeField(rest, ',');
    const auto id = ksym::ParseUnsigned<uint32_t>(part, 10);
    if (!id || *id == 0 || *id > kMaxPid || dangling) {
      Refuse(fmt::format("{}: '{}' is not a list of ids such as 12,34", option,
                         text));
    }
    ids.push_back(*id);
  }
  std::ranges::sort(ids);
  const auto repeated = std::ranges::unique(ids);
  ids.erase(repeated.begin(), repeated.end());
  return ids;
}

double ParseDuration(const std::string& text) {
  double seconds = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, seconds);
  if (error != std::errc() || stop != end || !std::isfinite(seconds) ||
      seconds <= 0 || seconds > kMaxDurationSeconds) {
    Refuse(
        fmt::format("DURATION '{}' is not a number of seconds above 0", text));
  }
  return seconds;
}

void AddSamplingOptions(CLI::App& app, RawOptions& raw,
                        ProfileOptions& options) {
  app.add_option("DURATION", raw.duration,
                 "Seconds to sample, fractions allowed; none: until Ctrl-C");
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
  app.add_option("-p,--pid", raw.pids, "Only these processes")
      ->type_name("LIST");
  app.add_option("-L,--tid", raw.tids, "Only these threads")->type_name("LIST");
  app.add_option("-C,--cpu", raw.cpus, "Only these CPUs, such as 0-3,8")
      ->type_name("LIST");
  auto& sampler = options.capture.sampler;
  app.add_option("--cgroup", sampler.cgroup_path,
                 "Only processes in this cgroup (v2) and those below")
      ->type_name("PATH");
  app.add_option("--cgroupmap", sampler.cgroup_map_path,
                 "Only cgroups whose ids are in this pinned BPF map")
      ->type_name("PATH");
  app.add_option("--mntnsmap", sampler.mntns_map_path,
                 "Only mount namespaces that are in this pinned BPF map")
      ->type_name("PATH");
  app.add_flag("-U,--user-stacks-only", raw.user_only, "No kernel stacks");
  app.add_flag("-K,--kernel-stacks-only", raw.kernel_only, "No user stacks");
  app.add_flag("-I,--include-idle", sampler.include_idle,
               "Sample idle CPUs, too, as 'swapper'");
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
                 "Write to FILE, in the format that its extension names "
                 "(.folded, .json, .txt, .pb.gz, .html, .svg, "
                 ".speedscope.json, .perf)")
      ->type_name("FILE");
  app.add_option("--format", raw.format,
                 "folded, json, text, pprof, flamegraph, svg, speedscope, "
                 "perf-script, or markup: addresses, to be named elsewhere "
                 "(default: by FILE, else folded)")
      ->type_name(
          "folded|json|text|pprof|flamegraph|svg|speedscope|perf-script|"
          "markup");
  app.add_flag("-f,--folded", raw.folded, "The same as --format folded");
  app.add_option("--by", raw.by,
                 "What stacks start with: comm, pid or tid (default comm)")
      ->type_name("comm|pid|tid");
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
  app.add_flag("-q,--quiet", options.quiet, "Nothing on stderr but errors");
  app.add_flag("-v,--verbose", options.verbose,
               "Say what is done, with libbpf's messages");
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

void DecideRate(const CLI::App& app, const RawOptions& raw,
                CaptureOptions& capture) {
  const bool has_frequency = app.count("--frequency") > 0;
  const bool has_count = app.count("--count") > 0;
  if (has_frequency && has_count) {
    Refuse("-F and -c contradict each other");
  }
  if (has_frequency && raw.frequency_hz == 0) Refuse("-F must be above 0");
  if (has_count && raw.count_period == 0) Refuse("-c must be above 0");
  if (raw.frequency_hz > INT64_MAX || raw.count_period > INT64_MAX) {
    Refuse("-F and -c must be from 1 to 2^63 - 1");
  }
  if (has_frequency) capture.rate.frequency_hz = raw.frequency_hz;
  if (has_count) capture.rate = {0, raw.count_period};
  if (capture.event.empty()) {
    if (app.count("--event") > 0) Refuse("-e needs the name of an event");
    return;
  }
  const auto event = ParseEvent(capture.event);
  if (!event) Refuse(event.error().message());
}

void DecideFilters(const CLI::App& app, const RawOptions& raw,
                   ProfileOptions& options) {
  SamplerConfig& sampler = options.capture.sampler;
  for (const auto& [name, text] :
       {std::pair("--pid", &raw.pids), std::pair("--tid", &raw.tids),
        std::pair("--cpu", &raw.cpus)}) {
    if (app.count(name) > 0 && text->empty()) {
      Refuse(fmt::format("{}: the list is empty", name));
    }
  }
  sampler.pids = ParseIds("-p", raw.pids);
  sampler.tids = ParseIds("-L", raw.tids);
  if (!sampler.pids.empty() && !sampler.tids.empty()) {
    Refuse("-p and -L contradict each other");
  }
  if (!raw.cpus.empty()) {
    auto cpus = ParseCpuList(raw.cpus);
    if (!cpus) Refuse("-C: " + cpus.error().message());
    options.capture.cpus = std::move(*cpus);
  }
  if (raw.user_only && raw.kernel_only) {
    Refuse("-U and -K contradict each other");
  }
  sampler.kernel_stacks = !raw.user_only;
  sampler.user_stacks = !raw.kernel_only;
  if (sampler.include_idle && !sampler.pids.empty()) {
    Refuse("-I and -p contradict each other: idle CPUs run no process");
  }
  if (options.command.empty()) return;
  if (!sampler.pids.empty() || !sampler.tids.empty() ||
      !sampler.cgroup_path.empty()) {
    Refuse("-p, -L and --cgroup contradict a COMMAND");
  }
  if (!raw.duration.empty())
    Refuse("DURATION and COMMAND contradict each other");
  if (sampler.include_idle) Refuse("-I and a COMMAND contradict each other");
}

uint32_t CheckEntries(std::string_view option, uint64_t entries) {
  if (entries == 0 || entries > kMaxEntries) {
    Refuse(fmt::format("{} must be from 1 to {}", option, kMaxEntries));
  }
  return static_cast<uint32_t>(entries);
}

void DecideStorage(const CLI::App& app, const RawOptions& raw,
                   CaptureOptions& capture) {
  if (raw.stack_map == "exact") {
    capture.store = StackStore::kExact;
  } else if (raw.stack_map == "stackid") {
    capture.store = StackStore::kStackId;
  } else if (raw.stack_map != "auto") {
    Refuse(fmt::format("--stack-map '{}' is none of auto, exact, stackid",
                       raw.stack_map));
  }
  if (app.count("--stack-storage-size") > 0) {
    capture.sampler.stack_entries =
        CheckEntries("--stack-storage-size", raw.stack_entries);
  }
  if (app.count("--hash-storage-size") > 0) {
    capture.sampler.count_entries =
        CheckEntries("--hash-storage-size", raw.hash_entries);
  }
  if (raw.max_stack_depth == 0 || raw.max_stack_depth > kMaxStackDepth) {
    Refuse(
        fmt::format("--max-stack-depth must be from 1 to {}", kMaxStackDepth));
  }
  capture.sampler.max_stack_depth = raw.max_stack_depth;
}

// A name without extension is folded; one with another tool's is a mistake
// that would only show when that tool refuses the file.
OutputFormat FormatOfPath(std::string_view path) {
  if (const auto format = FormatOfExtension(path)) return *format;
  const std::string_view name = path.substr(path.rfind('/') + 1);
  if (name.find('.', 1) != std::string_view::npos) {
    Refuse(
        fmt::format("-o {}: its name does not say the format: end it in "
                    ".folded, .json, .txt, .pb.gz, .html, .svg, "
                    ".speedscope.json or .perf, or give --format",
                    path));
  }
  return OutputFormat::kFolded;
}

void DecideOutput(const RawOptions& raw, ProfileOptions& options) {
  using By = OutputOptions::By;
  options.markup = raw.format == "markup";
  if (options.markup) {
    if (raw.folded) Refuse("-f and --format markup contradict each other");
  } else if (!raw.format.empty()) {
    const auto format = ParseOutputFormat(raw.format);
    if (!format) Refuse("--format: " + format.error().message());
    if (raw.folded && *format != OutputFormat::kFolded) {
      Refuse("-f and --format " + raw.format + " contradict each other");
    }
    options.format = *format;
  } else if (!raw.folded) {
    options.format = FormatOfPath(options.output_path);
  }
  if (raw.by == "pid") {
    options.output.by = By::kPid;
  } else if (raw.by == "tid") {
    options.output.by = By::kTid;
  } else if (raw.by != "comm") {
    Refuse(fmt::format("--by '{}' is none of comm, pid, tid", raw.by));
  }
  options.capture.sampler.per_thread = options.output.by == By::kTid;
  if (options.quiet && options.verbose) {
    Refuse("-q and -v contradict each other");
  }
}

void DecideSymbols(const CLI::App& app, const RawOptions& raw,
                   ProfileOptions& options) {
  options.demangle = !raw.no_demangle;
  for (const char* option : {"--no-demangle", "--inlines", "--lines",
                             "--debuginfod", "--addresses", "--annotations"}) {
    if (options.markup && app.count(option) > 0) {
      Refuse(
          fmt::format("{} and --format markup contradict each other: "
                      "nothing is named",
                      option));
    }
  }
  if (app.count("--symbol-timeout") > 0 && !options.debuginfod &&
      !options.inlines && !options.lines) {
    Refuse("--symbol-timeout needs --debuginfod, --inlines or --lines");
  }
  if (!(raw.symbol_timeout_seconds > 0 &&
        raw.symbol_timeout_seconds <= kMaxSymbolTimeoutSeconds)) {
    Refuse(fmt::format("--symbol-timeout must be above 0 and at most {}",
                       kMaxSymbolTimeoutSeconds));
  }
  options.symbol_timeout = std::chrono::ceil<std::chrono::milliseconds>(
      std::chrono::duration<double>(raw.symbol_timeout_seconds));
  if (raw.symbol_cache_mib == 0 || raw.symbol_cache_mib > kMaxCacheMib) {
    Refuse(fmt::format("--symbol-cache must be from 1 to {}", kMaxCacheMib));
  }
  options.symbol_cache_bytes = raw.symbol_cache_mib << 20;
}

// A replay takes its samples from a file, so nothing about sampling applies.
void CheckReplay(const CLI::App& app, const ProfileOptions& options) {
  if (options.replay_path.empty()) return;
  for (const char* option : {"DURATION",
                             "--frequency",
                             "--count",
                             "--event",
                             "--pid",
                             "--tid",
                             "--cpu",
                             "--cgroup",
                             "--cgroupmap",
                             "--mntnsmap",
                             "--user-stacks-only",
                             "--kernel-stacks-only",
                             "--include-idle",
                             "--stack-storage-size",
                             "--hash-storage-size",
                             "--max-stack-depth",
                             "--stack-map",
                             "--unwind",
                             "--unwind-memory",
                             "--raw"}) {
    if (app.count(option) > 0) {
      Refuse(fmt::format("{} and --replay contradict each other", option));
    }
  }
  if (!options.command.empty()) {
    Refuse("a COMMAND and --replay contradict each other");
  }
}

void Decide(const CLI::App& app, const RawOptions& raw,
            ProfileOptions& options) {
  DecideRate(app, raw, options.capture);
  DecideFilters(app, raw, options);
  DecideStorage(app, raw, options.capture);
  if (auto wrong = raw.unwind.Apply(options.capture)) {
    Refuse(std::move(*wrong));
  }
  for (const char* option :
       {"--output", "--raw", "--replay", "--kernel-symbols", "--cgroup",
        "--cgroupmap", "--mntnsmap"}) {
    if (app.count(option) > 0 && app[option]->as<std::string>().empty()) {
      Refuse(fmt::format("{}: the path is empty", option));
    }
  }
  DecideOutput(raw, options);
  DecideSymbols(app, raw, options);
  CheckReplay(app, options);
  if (!raw.duration.empty()) {
    options.duration =
        std::chrono::duration<double>(ParseDuration(raw.duration));
  }
  options.capture.sampler.verbosity =
      options.verbose ? Verbosity::kVerbose : Verbosity::kNormal;
}

// CLI11 knows nothing of what follows "--".
class UsageOfBothForms : public CLI::Formatter {
 public:
  std::string make_usage(const CLI::App*, std::string) const override {
    return "Usage: ksym-profile [OPTIONS] [DURATION]\n"
           "       ksym-profile [OPTIONS] -- COMMAND [ARG...]\n"
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
  AddOutputOptions(app, raw, options);
  AddSymbolOptions(app, raw, options);
  const auto commands = FileCommandTable();
  ksym::AddCompletionOption(app, commands.get());

  ParsedCommandLine parsed;
  try {
    app.parse(static_cast<int>(dashes - argv), argv);
    if (dashes != end) {
      options.command.assign(dashes + 1, end);
      if (options.command.empty()) Refuse("there is no COMMAND after --");
    }
    Decide(app, raw, options);
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
    // One line, whatever the arguments that it quotes have in them.
    std::string printable;
    ksym::AppendPrintable(parsed.error_text, printable);
    parsed.error_text = printable + " (see --help)";
  }
  return parsed;
}

}  // namespace profd
