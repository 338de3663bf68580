// SPDX-License-Identifier: Apache-2.0
#include "daemon/capture/interval_accounts.h"

#include <utility>

namespace profd {
namespace {

// Somewhat less than a second: of drains that are a second apart each has the
// times of its interval.
constexpr uint64_t kTimesPeriodNs = 900'000'000;

}  // namespace

std::vector<std::string> IntervalAccounts::Count(
    uint32_t set, const profile_stats& now,
    const ksym::ProcessHistory::Statistics& history, Accounting& accounting) {
  // The sampler's counters only grow, in each set on its own.
  const profile_stats before = std::exchange(stats_[set], now);
  accounting.taken = now.taken - before.taken;
  const auto lose = [&](LossCause cause, uint64_t count) {
    accounting.lost_by_cause[static_cast<size_t>(cause)] += count;
  };
  lose(LossCause::kCountsFull, now.lost_counts_full - before.lost_counts_full);
  lose(LossCause::kRingFull, now.lost_ring_full - before.lost_ring_full);

  ProcessLoss& loss = accounting.processes;
  loss.hints_dropped = now.hints_dropped - before.hints_dropped;
  loss.reports_lost = std::exchange(lost_reports_, 0);
  const uint64_t dropped =
      history.generations_dropped + history.mappings_dropped;
  loss.histories_dropped = dropped - std::exchange(histories_dropped_, dropped);
  copies_refused_ += now.copies_refused - before.copies_refused;

  std::vector<std::string> warnings;
  if (loss.reports_lost != 0) {
    warnings.emplace_back(
        "reports of mapped files were lost: processes that ended at once may "
        "lack names");
  }
  if (loss.histories_dropped != 0) {
    warnings.emplace_back(
        "too many processes, or mappings of one, to remember: some may lack "
        "names");
  }
  if (now.follow_full != before.follow_full) {
    warnings.emplace_back(
        "too many child processes: some are not in the profile");
  }
  return warnings;
}

void IntervalAccounts::CountTimes(const Samplers& samplers, uint64_t now_ns,
                                  Accounting& accounting) {
  if (now_ns - times_read_ns_ < kTimesPeriodNs) return;
  times_read_ns_ = now_ns;
  const EventTimes times = samplers.ReadTimes();
  accounting.time_enabled_ns = times.enabled_ns - times_.enabled_ns;
  accounting.time_running_ns = times.running_ns - times_.running_ns;
  times_ = times;
}

}  // namespace profd
