// SPDX-License-Identifier: Apache-2.0
#include "daemon/oneshot/raw_options.h"

#include <fmt/format.h>

#include <charconv>
#include <chrono>
#include <cmath>
#include <string_view>
#include <system_error>
#include <utility>

#include "daemon/base/now_ns.h"
#include "daemon/oneshot/report_target.h"

namespace profd {
namespace {

constexpr double kMaxDurationSeconds = 1e9;
// More entries would be refused by the kernel or take gigabytes.
constexpr uint64_t kMaxEntries = uint64_t{1} << 26;
constexpr double kMaxSymbolTimeoutSeconds = 3600;
constexpr uint64_t kMaxCacheMib = uint64_t{1} << 20;

[[noreturn]] void Refuse(std::string message) {
  throw UsageError{std::move(message)};
}

// What a unit behind a number stands for; 0: there is no such unit.
double SecondsOfUnit(std::string_view unit) {
  if (unit.empty() || unit == "s") return 1;
  if (unit == "m") return 60;
  return unit == "h" ? 3600 : 0;
}

// "2.5", "10s", "2m", "1h".
double ParseDuration(const std::string& text) {
  double number = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  const double seconds = number * SecondsOfUnit({stop, end});
  if (error != std::errc() || !std::isfinite(seconds) || seconds <= 0 ||
      seconds > kMaxDurationSeconds) {
    Refuse(
        fmt::format("DURATION '{}' is not a number of seconds above 0, or one "
                    "with s, m or h",
                    text));
  }
  return seconds;
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

std::optional<WaitProgram> ParseWaitProgram(std::string_view name) {
  if (name == "auto") return std::nullopt;
  if (name == "exit") return WaitProgram::kSchedExit;
  if (name == "interrupt") return WaitProgram::kInterrupt;
  if (name == "old") return WaitProgram::kOldInterrupt;
  Refuse(fmt::format(
      "--wait-program '{}' is none of auto, exit, interrupt, old", name));
}

// Waits have points in time and no events.
void DecideWaits(const CLI::App& app, const RawOptions& raw,
                 CaptureOptions& capture) {
  if (!raw.off_cpu && !raw.wall) {
    if (raw.wakers) Refuse("--wakers needs --off-cpu or --wall");
    return;
  }
  if (raw.off_cpu && raw.wall)
    Refuse("--off-cpu and --wall contradict each other");
  const char* which = raw.off_cpu ? "--off-cpu" : "--wall";
  for (const char* option : {"--count", "--event", "--cpu", "--include-idle"}) {
    if (app.count(option) > 0) {
      Refuse(fmt::format("{} and {} contradict each other", option, which));
    }
  }
  if (raw.stack_map == "stackid") {
    Refuse(
        fmt::format("--stack-map=stackid and {} contradict each other", which));
  }
  if (capture.rate.frequency_hz > kNsPerSecond) {
    Refuse(fmt::format("-F must be at most {} with {}", kNsPerSecond, which));
  }
  capture.bpf.cpu_samples = raw.wall;
  capture.bpf.waits = WaitConfig{.frequency_hz = capture.rate.frequency_hz,
                                 .program = ParseWaitProgram(raw.wait_program),
                                 .wants_wakers = raw.wakers};
}

void DecideFilters(const CLI::App& app, const RawOptions& raw,
                   ProfileOptions& options) {
  BpfConfig& bpf = options.capture.bpf;
  for (const auto& [name, text] :
       {std::pair("--pid", &raw.pids), std::pair("--tid", &raw.tids),
        std::pair("--cpu", &raw.cpus)}) {
    if (app.count(name) > 0 && text->empty()) {
      Refuse(fmt::format("{}: the list is empty", name));
    }
  }
  DecideIds(raw.pids, raw.tids, bpf);
  if (!raw.cpus.empty()) {
    auto cpus = ParseCpuList(raw.cpus);
    if (!cpus) Refuse("-C: " + cpus.error().message());
    options.capture.cpus = std::move(*cpus);
  }
  if (raw.user_only && raw.kernel_only) {
    Refuse("-U and -K contradict each other");
  }
  bpf.kernel_stacks = !raw.user_only;
  bpf.user_stacks = !raw.kernel_only;
  if (bpf.include_idle && !bpf.pids.empty()) {
    Refuse("-I and -p contradict each other: idle CPUs run no process");
  }
  if (options.command.empty()) return;
  if (!bpf.pids.empty() || !bpf.tids.empty() || !bpf.cgroup_path.empty()) {
    Refuse("-p, -L and --cgroup contradict a COMMAND");
  }
  if (!raw.duration.empty())
    Refuse("DURATION and COMMAND contradict each other");
  if (bpf.include_idle) Refuse("-I and a COMMAND contradict each other");
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
    capture.bpf.stack_entries =
        CheckEntries("--stack-storage-size", raw.stack_entries);
  }
  if (app.count("--hash-storage-size") > 0) {
    capture.bpf.count_entries =
        CheckEntries("--hash-storage-size", raw.hash_entries);
  }
  if (raw.max_stack_depth == 0 || raw.max_stack_depth > kMaxStackDepth) {
    Refuse(
        fmt::format("--max-stack-depth must be from 1 to {}", kMaxStackDepth));
  }
  capture.bpf.max_stack_depth = raw.max_stack_depth;
}

// A name without extension is folded; one with another tool's is a mistake
// that would only show when that tool refuses the file.
OutputFormat FormatOfPath(std::string_view path) {
  const std::string_view name = path.substr(path.rfind('/') + 1);
  if (name.find('.', 1) == std::string_view::npos) return OutputFormat::kFolded;
  const auto format = FormatOfFile(path);
  if (!format) Refuse(format.error().message());
  return *format;
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
    options.is_format_open = options.output_path.empty();
  }
  if (options.open && IsStdout(options.output_path)) {
    Refuse("--open needs a file to show, such as -o cpu.html");
  }
  if (raw.by == "pid") {
    options.output.by = By::kPid;
  } else if (raw.by == "tid") {
    options.output.by = By::kTid;
  } else if (raw.by != "comm") {
    Refuse(fmt::format("--by '{}' is none of comm, pid, tid", raw.by));
  }
  BpfConfig& bpf = options.capture.bpf;
  // Whether a thread is parked its own samples say.
  bpf.per_thread = options.output.by == By::kTid || bpf.waits.has_value();
  if (options.parked && !bpf.waits && options.replay_path.empty()) {
    Refuse("--parked needs --off-cpu, --wall or --replay");
  }
  DecideVerbosity(options);
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
                             "--off-cpu",
                             "--wall",
                             "--wakers",
                             "--stack-storage-size",
                             "--hash-storage-size",
                             "--max-stack-depth",
                             "--stack-map",
                             "--unwind",
                             "--unwind-memory",
                             "--runtimes",
                             "--own-priority",
                             "--raw"}) {
    if (app.count(option) > 0) {
      Refuse(fmt::format("{} and --replay contradict each other", option));
    }
  }
  if (!options.command.empty()) {
    Refuse("a COMMAND and --replay contradict each other");
  }
}

}  // namespace

void DecideOptions(const CLI::App& app, const RawOptions& raw,
                   ProfileOptions& options) {
  DecideRate(app, raw, options.capture);
  DecideWaits(app, raw, options.capture);
  DecideFilters(app, raw, options);
  DecideStorage(app, raw, options.capture);
  if (auto wrong = raw.unwind.Apply(options.capture)) {
    Refuse(std::move(*wrong));
  }
  if (auto wrong = raw.runtimes.Apply(options)) Refuse(std::move(*wrong));
  for (const char* option :
       {"--output", "--raw", "--replay", "--kernel-symbols", "--cgroup",
        "--cgroupmap", "--mntnsmap"}) {
    if (app.count(option) > 0 && app[option]->as<std::string>().empty()) {
      Refuse(fmt::format("{}: the path is empty", option));
    }
  }
  const auto priority = ParseOwnPriority(raw.own_priority);
  if (!priority) {
    Refuse(
        fmt::format("--own-priority '{}' is none of auto, realtime, nice, "
                    "normal",
                    raw.own_priority));
  }
  options.own_priority = *priority;
  DecideOutput(raw, options);
  DecideSymbols(app, raw, options);
  CheckReplay(app, options);
  if (!raw.duration.empty()) {
    options.duration =
        std::chrono::duration<double>(ParseDuration(raw.duration));
  }
}

}  // namespace profd
