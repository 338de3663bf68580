// SPDX-License-Identifier: Apache-2.0
#include "daemon/service/metrics.h"

#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <iterator>
#include <string_view>

#include "daemon/base/now_ns.h"
#include "daemon/profile/accounting.h"
#include "daemon/service/metric_table.h"
#include "ksym/base/file.h"
#include "ksym/base/text.h"

namespace profd {
namespace {

// # HELP and # TYPE of a family, in front of its values.
void Describe(std::string_view name, Metric::Kind kind, std::string_view help,
              std::string& text) {
  fmt::format_to(std::back_inserter(text),
                 "# HELP ksym_{0} {2}\n# TYPE ksym_{0} {1}\n", name,
                 kind == Metric::Kind::kCounter ? "counter" : "gauge", help);
}

void AppendMetric(const Metric& metric, const ServiceCounters& counters,
                  std::string& text) {
  if (!metric.help.empty()) {
    Describe(metric.name, metric.kind, metric.help, text);
  }
  text += "ksym_";
  text += metric.name;
  if (!metric.label.empty()) {
    fmt::format_to(std::back_inserter(text), "{{{}=\"{}\"}}", metric.label,
                   metric.label_value);
  }
  const uint64_t number = metric.counter != nullptr
                              ? (counters.*metric.counter).load()
                              : metric.read();
  if (metric.unit == Metric::Unit::kSecondsOfNs) {
    fmt::format_to(std::back_inserter(text), " {}\n",
                   static_cast<double>(number) / kNsPerSecond);
  } else {
    fmt::format_to(std::back_inserter(text), " {}\n", number);
  }
}

void AppendLosses(const ServiceCounters& counters, std::string& text) {
  Describe("samples_lost_total", Metric::Kind::kCounter,
           "Samples that were taken and are in no profile.", text);
  const auto append = [&](std::string_view cause, uint64_t samples) {
    fmt::format_to(std::back_inserter(text),
                   "ksym_samples_lost_total{{cause=\"{}\"}} {}\n", cause,
                   samples);
  };
  for (size_t i = 0; i < kLossCauses; ++i) {
    append(Name(static_cast<LossCause>(i)), counters.lost_by_cause[i].load());
  }
  append("naming-behind", counters.samples_dropped_unnamed.load());
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
  std::string text;
  Describe("build_info", Metric::Kind::kGauge, "The version, in its label.",
           text);
  text += "ksym_build_info{version=\"" KSYM_VERSION "\"} 1\n";
  AppendLosses(counters, text);
  for (const Metric& metric : Metrics()) AppendMetric(metric, counters, text);
  return text;
}

}  // namespace profd
