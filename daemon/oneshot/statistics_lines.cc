// SPDX-License-Identifier: Apache-2.0
#include "daemon/oneshot/statistics_lines.h"

#include <fmt/format.h>

namespace profd {
namespace {

std::string KernelLine(const KernelTableStatistics& kernel) {
  return fmt::format(
      "kernel symbols: {} snapshots, {} symbols, {} bytes, {:.1f} ms, {} "
      "changes",
      kernel.snapshots, kernel.symbols, kernel.bytes,
      static_cast<double>(kernel.reading_ns) / 1e6, kernel.changes);
}

std::string UserLine(const ksym::Symbolizer& symbolizer) {
  const auto user = symbolizer.statistics();
  return fmt::format(
      "user symbols: {} files, {} symbols, {} bytes, {} files failed, {} "
      "evicted, {} closed early, {} given up, {} perf maps refused",
      user.files_loaded, user.symbols, user.cache_bytes, user.files_failed,
      user.files_evicted, user.files_closed, user.files_given_up,
      user.perf_maps_refused);
}

std::string TablesLine(const UnwindStatistics& tables) {
  return fmt::format(
      "unwind tables: {} processes, {} files, {} bytes, {:.1f} ms, {} files "
      "failed, {} refused, {} evicted, {} processes refused, {} evicted; ready "
      "{} ms after the first sample, at the latest {}; {} stacks copied, {} "
      "not for want of room",
      tables.processes, tables.files, tables.rows_bytes, tables.milliseconds,
      tables.files_failed, tables.files_refused, tables.files_evicted,
      tables.processes_refused, tables.processes_evicted,
      tables.median_delay.count(), tables.longest_delay.count(), tables.copies,
      tables.copies_refused);
}

std::string RuntimesLine(const RuntimeStatistics& runtimes) {
  return fmt::format(
      "runtimes: {} processes, {} functions, {} bytes, {} not read, {} without "
      "room; {} runs of frames, {} torn, {} cut off, {} of no native frame; {} "
      "frames without a name; {} places where inlined calls are not described, "
      "{} too many, {} that do not hold up; {} sleeping threads read, {} went "
      "on, {} out of time; {} copied stacks through Java's code read, {} not "
      "certain, {} too old, {} out of time",
      runtimes.processes, runtimes.codes, runtimes.code_bytes,
      runtimes.codes_unread, runtimes.codes_refused, runtimes.runs.all,
      runtimes.runs.torn, runtimes.runs.cut, runtimes.runs.not_placed,
      runtimes.frames_unnamed, runtimes.inlined.not_described,
      runtimes.inlined.too_much, runtimes.inlined.corrupt,
      runtimes.sleepers.read, runtimes.sleepers.went_on,
      runtimes.sleepers.out_of_time, runtimes.copies.read,
      runtimes.copies.uncertain, runtimes.copies.too_old,
      runtimes.copies.out_of_time);
}

std::string ProcessesLine(const ProcessLoss& processes) {
  return fmt::format(
      "processes: {} hints dropped, {} reports lost, {} histories dropped",
      processes.hints_dropped, processes.reports_lost,
      processes.histories_dropped);
}

}  // namespace

std::vector<std::string> StatisticsLines(Naming& naming,
                                         const UnwindStatistics& tables,
                                         const RuntimeStatistics& runtimes) {
  std::vector<std::string> lines = {
      KernelLine(naming.kernel().statistics()), TablesLine(tables),
      RuntimesLine(runtimes), ProcessesLine(naming.accounting().processes)};
  if (const ksym::Symbolizer* user = naming.symbols().symbolizer()) {
    lines.insert(lines.begin() + 1, UserLine(*user));
  }
  return lines;
}

}  // namespace profd
