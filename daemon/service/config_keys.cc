// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>

#include "daemon/output/format_table.h"
#include "daemon/service/config.h"

namespace profd {
namespace {

constexpr auto kUnwindWords =
    std::to_array<std::string_view>({"auto", "dwarf", "fp", "none"});
constexpr auto kRuntimeWords =
    std::to_array<std::string_view>({"auto", "none", "java", "node", "python"});
constexpr auto kPriorityWords =
    std::to_array<std::string_view>({"auto", "realtime", "nice", "normal"});
constexpr auto kLevelWords =
    std::to_array<std::string_view>({"error", "warning", "info", "debug"});

constexpr auto kLabelWords = std::to_array<std::string_view>(
    {"host", "comm", "pid", "tid", "cgroup", "unit", "container_id", "pod",
     "container_name"});
constexpr auto kVariableWords = std::to_array<std::string_view>(
    {"OTEL_SERVICE_NAME", "OTEL_RESOURCE_ATTRIBUTES"});

template <const auto& kWords>
std::span<const std::string_view> All() {
  return kWords;
}

using Config = ServiceConfig;

constexpr auto kKeys = std::to_array<ConfigKey>({
    {.path = "frequency_hz",
     .help = "samples per second and CPU (default 19)",
     .kind =
         ConfigKey::Number{
             [](Config& c) -> uint64_t& { return c.frequency_hz; }, 1, 1000}},
    {.path = "interval_seconds",
     .help = "length of a profile (default 10)",
     .kind = ConfigKey::Number{[](Config& c) -> uint64_t& {
                                 return c.interval_seconds;
                               },
                               1, 3600}},
    {.path = "labels",
     .help = "of samples: host, comm, pid, tid, cgroup, unit, container_id, "
             "pod, container_name",
     .kind = ConfigKey::Words{[](Config& c) -> std::vector<std::string>& {
                                return c.labels;
                              },
                              kLabelWords}},
    {.path = "environment_labels",
     .help = "variables of processes that become labels: OTEL_SERVICE_NAME, "
             "OTEL_RESOURCE_ATTRIBUTES (default none)",
     .kind = ConfigKey::Words{[](Config& c) -> std::vector<std::string>& {
                                return c.environment_labels;
                              },
                              kVariableWords}},
    {.path = "containers.logs_directory",
     .help =
         "kubelet's pods and containers, for pods' names (default /var/log)",
     .kind = ConfigKey::Path{[](Config& c) -> std::string& {
       return c.containers.logs_directory;
     }}},
    {.path = "containers.docker_directory",
     .help = "where Docker keeps its containers, for their names",
     .kind = ConfigKey::Path{[](Config& c) -> std::string& {
       return c.containers.docker_directory;
     }}},
    {.path = "containers.podman_directory",
     .help = "where Podman keeps its containers, for their names",
     .kind = ConfigKey::Path{[](Config& c) -> std::string& {
       return c.containers.podman_directory;
     }}},
    {.path = "stacks.max_depth",
     .help = "frames of a stack, at the most (default 127)",
     .kind = ConfigKey::Number{[](Config& c) -> uint64_t& {
                                 return c.stacks.max_depth;
                               },
                               1, 512}},
    {.path = "stacks.unwind",
     .help = "how user stacks are walked: auto, dwarf, fp or none",
     .kind = ConfigKey::Choice{[](Config& c) -> std::string& {
                                 return c.stacks.unwind;
                               },
                               All<kUnwindWords>}},
    {.path = "stacks.runtimes",
     .help = "runtimes whose functions are in stacks: auto (all), none or one",
     .kind = ConfigKey::Choice{[](Config& c) -> std::string& {
                                 return c.stacks.runtimes;
                               },
                               All<kRuntimeWords>}},
    {.path = "stacks.memory_bytes",
     .help = "kernel memory for unwind tables (default 128 MiB)",
     .kind = ConfigKey::Number{[](Config& c) -> uint64_t& {
                                 return c.stacks.memory_bytes;
                               },
                               uint64_t{1} << 20, uint64_t{16} << 30}},
    {.path = "stacks.cache_directory",
     .help = "where unwind tables are kept for the next start",
     .kind = ConfigKey::Path{[](Config& c) -> std::string& {
       return c.stacks.cache_directory;
     }}},
    {.path = "waiting.enabled",
     .help = "sample threads that wait as well (default false)",
     .kind =
         ConfigKey::Flag{[](Config& c) -> bool& { return c.waiting.enabled; }}},
    {.path = "waiting.frequency_hz",
     .help = "samples per second of each thread's waits (default 19)",
     .kind = ConfigKey::Number{[](Config& c) -> uint64_t& {
                                 return c.waiting.frequency_hz;
                               },
                               1, 1000}},
    {.path = "symbols.cache_bytes",
     .help = "symbol tables in memory, at the most (default 64 MiB)",
     .kind = ConfigKey::Number{[](Config& c) -> uint64_t& {
                                 return c.symbols.cache_bytes;
                               },
                               uint64_t{1} << 20, uint64_t{16} << 30}},
    {.path = "symbols.demangle",
     .help = "names as their source has them (default true)",
     .kind = ConfigKey::Flag{[](Config& c) -> bool& {
       return c.symbols.demangle;
     }}},
    {.path = "symbols.lines",
     .help = "source files and lines of frames (default false)",
     .kind =
         ConfigKey::Flag{[](Config& c) -> bool& { return c.symbols.lines; }}},
    {.path = "symbols.inlines",
     .help = "frames for inlined calls (default false)",
     .kind =
         ConfigKey::Flag{[](Config& c) -> bool& { return c.symbols.inlines; }}},
    {.path = "symbols.line_bytes",
     .help = "files with lines on disk, at the most (default 1 GiB)",
     .kind = ConfigKey::Number{[](Config& c) -> uint64_t& {
                                 return c.symbols.line_bytes;
                               },
                               uint64_t{1} << 20, uint64_t{1} << 50}},
    {.path = "files.directory",
     .help = "where profiles are written; empty: nowhere (default "
             "/var/lib/ksym-profiled with any other key of files, else "
             "nowhere)",
     .kind = ConfigKey::Path{[](Config& c) -> std::string& {
       return c.files.directory;
     }}},
    {.path = "files.format",
     .help = "folded, json, pprof or otlp (default pprof)",
     .kind = ConfigKey::Choice{[](Config& c) -> std::string& {
                                 return c.files.format;
                               },
                               FileFormats}},
    {.path = "files.max_bytes",
     .help = "all profiles together, at the most (default 1 GiB)",
     .kind = ConfigKey::Number{[](Config& c) -> uint64_t& {
                                 return c.files.max_bytes;
                               },
                               uint64_t{64} << 10, uint64_t{1} << 50}},
    {.path = "files.max_age_seconds",
     .help = "age at which a profile is deleted (default 7 days)",
     .kind = ConfigKey::Number{[](Config& c) -> uint64_t& {
                                 return c.files.max_age_seconds;
                               },
                               60, uint64_t{10} * 366 * 24 * 3600}},
    {.path = "history.enabled",
     .help = "keep samples by the second, for ksym-profile history "
             "(default true)",
     .kind =
         ConfigKey::Flag{[](Config& c) -> bool& { return c.history.enabled; }}},
    {.path = "history.directory",
     .help = "where the history is; empty: nowhere",
     .kind = ConfigKey::Path{[](Config& c) -> std::string& {
       return c.history.directory;
     }}},
    {.path = "history.max_bytes",
     .help = "the history on disk, at the most (default 256 MiB)",
     .kind = ConfigKey::Number{[](Config& c) -> uint64_t& {
                                 return c.history.max_bytes;
                               },
                               uint64_t{1} << 20, uint64_t{1} << 50}},
    {.path = "history.max_age_seconds",
     .help = "age at which samples are deleted (default 30 days)",
     .kind = ConfigKey::Number{[](Config& c) -> uint64_t& {
                                 return c.history.max_age_seconds;
                               },
                               3600, uint64_t{10} * 366 * 24 * 3600}},
    {.path = "history.thin_after_hours",
     .help = "age at which stacks that were seen once in an hour go, in hours "
             "(default 24); 0: never",
     .kind = ConfigKey::Number{[](Config& c) -> uint64_t& {
                                 return c.history.thin_after_hours;
                               },
                               0, uint64_t{10} * 366 * 24}},
    {.path = "http.listen",
     .help = "unix:/PATH and ADDRESS:PORT; empty: nowhere",
     .kind = ConfigKey::Addresses{[](Config& c) -> std::vector<std::string>& {
       return c.http.listen;
     }}},
    {.path = "http.token_file",
     .help = "file with the token that TCP clients must give; empty: none",
     .kind = ConfigKey::Path{[](Config& c) -> std::string& {
       return c.http.token_file;
     }}},
    {.path = "http.recent_bytes",
     .help = "profiles kept in memory for clients (default 32 MiB)",
     .kind = ConfigKey::Number{[](Config& c) -> uint64_t& {
                                 return c.http.recent_bytes;
                               },
                               0, uint64_t{4} << 30}},
    {.path = "http.recent_seconds",
     .help = "how long these profiles are kept, at the most (default 300)",
     .kind = ConfigKey::Number{[](Config& c) -> uint64_t& {
                                 return c.http.recent_seconds;
                               },
                               0, uint64_t{7} * 24 * 3600}},
    {.path = "push",
     .help = "URLs to send profiles to; .../ingest: as Pyroscope wants it, "
             "otlp+http://...: OpenTelemetry's, "
             "clickhouse+http://.../DATABASE: rows",
     .kind = ConfigKey::Targets{[](Config& c) -> std::vector<PushTarget>& {
       return c.push;
     }}},
    {.path = "push_spool.directory",
     .help = "where profiles wait until they are sent",
     .kind = ConfigKey::Path{[](Config& c) -> std::string& {
       return c.push_spool.directory;
     }}},
    {.path = "push_spool.max_bytes",
     .help = "waiting profiles of each URL, at the most (default 256 MiB)",
     .kind = ConfigKey::Number{[](Config& c) -> uint64_t& {
                                 return c.push_spool.max_bytes;
                               },
                               uint64_t{64} << 10, uint64_t{1} << 50}},
    {.path = "limits.cpu_percent",
     .help = "CPU use that makes it sample less; 0: none (default 50)",
     .kind = ConfigKey::Number{[](Config& c) -> uint64_t& {
                                 return c.limits.cpu_percent;
                               },
                               0, 100'000}},
    {.path = "limits.memory_bytes",
     .help = "memory use that makes it keep less; 0: none (default 512 MiB)",
     .kind = ConfigKey::Number{[](Config& c) -> uint64_t& {
                                 return c.limits.memory_bytes;
                               },
                               0, uint64_t{1} << 50}},
    {.path = "limits.own_priority",
     .help = "how the service's threads run: auto, realtime, nice or normal",
     .kind = ConfigKey::Choice{[](Config& c) -> std::string& {
                                 return c.limits.own_priority;
                               },
                               All<kPriorityWords>}},
    {.path = "log.level",
     .help = "error, warning, info or debug (default info)",
     .kind = ConfigKey::Choice{[](Config& c) -> std::string& {
                                 return c.log.level;
                               },
                               All<kLevelWords>}},
});

}  // namespace

std::span<const ConfigKey> ConfigKeys() { return kKeys; }

std::string FlagOf(const ConfigKey& key) {
  std::string flag = "--" + std::string(key.path);
  std::ranges::replace(flag, '.', '-');
  std::ranges::replace(flag, '_', '-');
  return flag;
}

}  // namespace profd
