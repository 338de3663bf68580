// SPDX-License-Identifier: Apache-2.0
// bench_compact DIRECTORY: puts the segments of a history together, as the
// service does when their hour is over, and prints how much CPU time that took
// in milliseconds, and the most memory in KiB.

#include <fmt/format.h>
#include <sys/resource.h>

#include <cstdint>
#include <cstdio>

#include "daemon/base/now_ns.h"
#include "daemon/history/history_writer.h"

int main(int count, char** arguments) {
  using profd::NowNs;
  namespace history = profd::history;
  if (count != 2) return 2;
  constexpr uint64_t kTwoHoursNs = 7200 * profd::kNsPerSecond;
  const uint64_t later = NowNs(CLOCK_REALTIME) + kTwoHoursNs;
  auto writer = history::HistoryWriter::Open(
      arguments[1], {}, {.boot = {}, .name = "bench_compact"}, later);
  const uint64_t begin = NowNs(CLOCK_PROCESS_CPUTIME_ID);
  ksym::Status done;
  for (uint64_t before = 0; writer && done;) {
    done = writer->Compact(later, [] { return false; });
    if (writer->counts().compactions == before) break;
    before = writer->counts().compactions;
  }
  if (!writer || !done) {
    fmt::print(stderr, "{}\n",
               (writer ? done.error() : writer.error()).message());
    return 1;
  }
  const uint64_t cpu_ns = NowNs(CLOCK_PROCESS_CPUTIME_ID) - begin;
  rusage use = {};
  ::getrusage(RUSAGE_SELF, &use);
  fmt::print("{} {}\n", cpu_ns / 1'000'000, use.ru_maxrss);
  return 0;
}
