#include "daemon/service/metrics.h"

#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <iterator>
#include <string_view>
#include <utility>

#include "daemon/profile/accounting.h"
#include "ksym/base/file.h"
#include "ksym/base/text.h"

namespace profd {
namespace {

constexpr double kNsPerSecond = 1e9;

class Writer {
 public:
  // `kind`: "counter" or "gauge".
  void Describe(std::string_view name, std::string_view kind,
                std::string_view help) {
    fmt::format_to(std::back_inserter(text_),
                   "# HELP ksym_{0} {2}\n# TYPE ksym_{0} {1}\n", name, kind,
                   help);
  }
  template <typename T>
  void Value(std::string_view name, T value) {
    fmt::format_to(std::back_inserter(text_), "ksym_{} {}\n", name, value);
  }
  void Counter(std::string_view name, std::string_view help, uint64_t value) {
    Describe(name, "counter", help);
    Value(name, value);
  }
  void Gauge(std::string_view name, std::string_view help, uint64_t value) {
    Describe(name, "gauge", help);
    Value(name, value);
  }
  void Seconds(std::string_view name, std::string_view help, uint64_t ns) {
    Describe(name, "counter", help);
    Value(name, static_cast<double>(ns) / kNsPerSecond);
  }
  std::string Take() { return std::move(text_); }

 private:
  std::string text_;
};

void WriteSamples(const ServiceCounters& c, Writer& out) {
  out.Counter("samples_taken_total", "Samples that were taken.",
              c.samples_taken);
  out.Counter("samples_emitted_total", "Samples that are in profiles.",
              c.samples_emitted);
  out.Describe("samples_lost_total", "counter",
               "Samples that were taken and are in no profile.");
  for (size_t i = 0; i < kLossCauses; ++i) {
    out.Value(fmt::format("samples_lost_total{{cause=\"{}\"}}",
                          Name(static_cast<LossCause>(i))),
              c.lost_by_cause[i].load());
  }
  out.Value("samples_lost_total{cause=\"naming-behind\"}",
            c.samples_dropped_unnamed.load());
  out.Counter("samples_without_cgroup_total",
              "Samples in profiles whose cgroup is not known.",
              c.samples_without_cgroup);
  out.Counter("drains_total", "Times that the kernel's counts were taken.",
              c.drains);
  out.Seconds("drain_seconds_total", "Time that it took, waiting included.",
              c.drain_ns);
  out.Seconds("naming_seconds_total", "Time that finding names took.",
              c.naming_ns);
}

void WriteSymbols(const ServiceCounters& c, Writer& out) {
  out.Gauge("symbol_cache_bytes", "Symbol tables of files in memory.",
            c.symbol_cache_bytes);
  out.Gauge("symbols", "Symbols in them.", c.symbols);
  out.Gauge("kernel_symbols", "Symbols of the kernel's table.",
            c.kernel_symbols);
  out.Gauge("kernel_symbol_bytes", "Size of the kernel's table.",
            c.kernel_symbol_bytes);
  out.Gauge("kernel_snapshots", "Readings of it since symbols were read anew.",
            c.kernel_snapshots);
  out.Describe("kernel_reading_seconds", "gauge", "Time that these took.");
  out.Value("kernel_reading_seconds",
            static_cast<double>(c.kernel_reading_ns) / kNsPerSecond);
  out.Counter("symbolizers_total", "Times that all symbols were read anew.",
              c.symbolizers);
  out.Counter("symbolizers_given_up_total",
              "Times that names were not found in time.",
              c.symbolizers_given_up);
  out.Counter("files_given_up_total",
              "Files whose file system did not answer in time.",
              c.files_given_up);
  out.Gauge("unwind_table_bytes", "Call-frame information in the kernel.",
            c.unwind_table_bytes);
  out.Counter("processes_not_pinned_total",
              "Processes whose files could not be opened in time.",
              c.processes_not_pinned);
}

void WriteLines(const ServiceCounters& c, Writer& out) {
  out.Counter("line_frames_total",
              "User frames whose source lines were looked up.", c.line_frames);
  out.Counter("line_frames_found_total", "Those that have a line.",
              c.line_frames_found);
  out.Describe(
      "line_files_total", "counter",
      "Programs whose debug data were looked for, by what came of it.");
  for (const auto& [result, count] :
       {std::pair("made", &c.line_files_made),
        std::pair("no-debug-data", &c.line_files_without),
        std::pair("untrusted", &c.line_files_untrusted),
        std::pair("failed", &c.line_files_failed)}) {
    out.Value(fmt::format("line_files_total{{result=\"{}\"}}", result),
              count->load());
  }
}

void WritePush(const ServiceCounters& c, Writer& out) {
  out.Counter("push_sent_total", "Profiles that receivers have taken.",
              c.push_sent);
  out.Counter("push_failures_total", "Attempts that failed; repeated later.",
              c.push_failed);
  out.Counter("push_rejected_total", "Profiles that receivers refused.",
              c.push_rejected);
  out.Counter("push_dropped_total",
              "Profiles that were not sent because too many were waiting.",
              c.push_dropped);
  out.Gauge("push_waiting", "Profiles that wait to be sent.", c.push_waiting);
  out.Gauge("push_waiting_bytes", "Disk space of them.", c.push_waiting_bytes);
}

void WriteSinks(const ServiceCounters& c, Writer& out) {
  out.Counter("profiles_total", "Profiles that were made.", c.profiles);
  out.Counter("profiles_dropped_total",
              "Profiles that were not written because the disk was too slow.",
              c.profiles_dropped_unwritten);
  out.Counter("files_written_total", "Profiles that were written.",
              c.files_written);
  out.Counter("file_bytes_written_total", "Bytes of them.",
              c.file_bytes_written);
  out.Counter("files_failed_total", "Profiles that could not be written.",
              c.files_failed);
  out.Counter("http_requests_total", "Requests that were answered.",
              c.http_requests);
  out.Counter("http_refused_total", "Requests that found no place.",
              c.http_refused);
  out.Counter("reloads_total", "Configurations that came into force.",
              c.reloads);
  out.Counter("reloads_refused_total", "Configurations that were invalid.",
              c.reloads_refused);
}

}  // namespace

uint64_t OwnCpuNs() {
  rusage usage = {};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto ns = [](const timeval& time) {
    return static_cast<uint64_t>(time.tv_sec) * 1'000'000'000 +
           static_cast<uint64_t>(time.tv_usec) * 1000;
  };
  return ns(usage.ru_utime) + ns(usage.ru_stime);
}

// The second number of /proc/self/statm, in pages.
uint64_t OwnResidentBytes() {
  const auto text = ksym::ReadFile("/proc/self/statm", 256);
  if (!text) return 0;
  std::string_view rest = *text;
  ksym::TakeField(rest, ' ');
  return ksym::ParseUnsigned(ksym::TakeField(rest, ' '), 10).value_or(0) *
         static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
}

std::string RenderMetrics(const ServiceCounters& counters) {
  Writer out;
  out.Describe("build_info", "gauge", "The version, in its label.");
  out.Value("build_info{version=\"" KSYM_VERSION "\"}", 1);
  WriteSamples(counters, out);
  WriteSymbols(counters, out);
  WriteLines(counters, out);
  WriteSinks(counters, out);
  WritePush(counters, out);
  out.Seconds("cpu_seconds_total", "CPU time of this process.", OwnCpuNs());
  out.Gauge("resident_bytes", "Resident memory of this process.",
            OwnResidentBytes());
  out.Gauge("frequency_hz", "Samples per second and CPU now.",
            counters.frequency_hz);
  out.Gauge("guard_level", "What the limits cost now: 0 nothing, 4 the most.",
            counters.guard_level);
  out.Counter("guard_changes_total", "Changes of it.", counters.guard_changes);
  return out.Take();
}

}  // namespace profd
