// SPDX-License-Identifier: Apache-2.0
#include "daemon/oneshot/thread_lines.h"

#include <fmt/format.h>

#include <string_view>

#include "daemon/profile/sample_kind.h"
#include "ksym/base/printable.h"

namespace profd {
namespace {

double Seconds(uint64_t ns) { return static_cast<double>(ns) / 1e9; }

std::string SumLine(const ThreadTimes& times, const Profile& profile) {
  const StateTimes& sum = times.sums().sum;
  uint64_t sampled = 0;
  for (const ProfileSample& sample : profile.samples) {
    sampled +=
        profile.metadata.kinds[sample.kind].has_values ? sample.value : 0;
  }
  const uint64_t waited = sum.runnable_ns + sum.blocked_ns;
  std::string line = fmt::format(
      "{} threads: {:.3f} s running, {:.3f} s runnable, {:.3f} s blocked",
      times.sums().count, Seconds(sum.running_ns), Seconds(sum.runnable_ns),
      Seconds(sum.blocked_ns));
  // Those of a log of addresses have no names and are not here.
  const bool are_here =
      !profile.samples.empty() || profile.accounting.emitted == 0;
  if (waited != 0 && are_here) {
    line += fmt::format("; samples come to {:.1f} % of what they waited",
                        100.0 * Seconds(sampled) / Seconds(waited));
  }
  return line;
}

// What the estimates lack, and what they cost not to.
void AppendStatistics(const ThreadTimes& times,
                      std::vector<std::string>& lines) {
  const wait_stats& statistics = times.statistics();
  if (statistics.thinned != 0) {
    lines.push_back(fmt::format(
        "{} stacks of waits were not taken, to bound the cost: others stand "
        "for them",
        statistics.thinned));
  }
  const uint64_t unseen = statistics.unseen + statistics.crowded;
  if (unseen != 0) {
    lines.push_back(fmt::format(
        "{} waits were not seen from begin to end, and are in no sample",
        unseen));
  }
  if (statistics.untaken != 0) {
    lines.push_back(fmt::format(
        "{} threads went on before their stacks were taken: these waits are "
        "in no sample",
        statistics.untaken));
  }
  if (statistics.ends_full != 0) {
    lines.push_back(fmt::format("{} threads that ended are in no sum",
                                statistics.ends_full));
  }
  if (times.lives_dropped() != 0) {
    lines.push_back(
        fmt::format("{} threads were too many to tell whether they are parked",
                    times.lives_dropped()));
  }
}

// Why waits have no waker.
void AppendWakers(const ThreadTimes& times, std::vector<std::string>& lines) {
  const wait_stats& statistics = times.statistics();
  const auto add = [&](uint64_t count, std::string_view why) {
    if (count != 0) {
      lines.push_back(
          fmt::format("{} sampled waits have no waker: {}", count, why));
    }
  };
  add(statistics.wakers_unseen, "nobody was seen to end them");
  add(statistics.wakers_too_many,
      "their stacks were not taken, to bound the "
      "cost");
  add(statistics.wakers_lost, "there was no room for their stacks");
  add(statistics.wakers_untold,
      "the kernel did not tell whether it was an "
      "interrupt");
  if (times.forgotten_wakers() != 0) {
    lines.push_back(fmt::format(
        "{} wakers were forgotten before the threads that they woke ran",
        times.forgotten_wakers()));
  }
}

}  // namespace

std::vector<std::string> ThreadTimeLines(const ThreadTimes& times,
                                         const Profile& profile,
                                         ThreadLines lines) {
  if (!AreThreadStates(profile.metadata.kinds)) return {};
  std::vector<std::string> text = {SumLine(times, profile)};
  AppendStatistics(times, text);
  AppendWakers(times, text);
  if (lines == ThreadLines::kSum) return text;
  for (const ThreadSums::Thread& thread : times.sums().threads) {
    text.push_back(fmt::format(
        "thread {}/{}: {} ns running, {} ns runnable, {} ns blocked ({})",
        thread.pid, thread.tid, thread.times.running_ns,
        thread.times.runnable_ns, thread.times.blocked_ns,
        ksym::Printable(thread.comm)));
  }
  return text;
}

}  // namespace profd
