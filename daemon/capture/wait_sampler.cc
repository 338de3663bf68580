// SPDX-License-Identifier: Apache-2.0
#include "daemon/capture/wait_sampler.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <limits>
#include <string>
#include <thread>
#include <utility>

#include "bpf/waiting_abi.h"
#include "daemon/base/now_ns.h"
#include "daemon/capture/batch.h"
#include "daemon/capture/grace_period.h"
#include "daemon/capture/sleeping_stacks.h"
#include "daemon/capture/thread_records.h"

namespace profd {
namespace {

using ksym::Fail;
using ksym::FailErrno;

// So long a nap, so often, until the programs saw this thread go on.
constexpr std::chrono::milliseconds kNap(1);
constexpr int kNaps = 20;
// Whenever a wait began.
constexpr __u64 kAnyTime = std::numeric_limits<__u64>::max();

// How a program knows the tracepoint that it is attached to.
enum class Known : uint8_t { kByName, kByType };

ksym::Result<ksym::UniqueFd> Attach(const char* tracepoint, Known known,
                                    int program) {
  ksym::UniqueFd fd(bpf_raw_tracepoint_open(
      known == Known::kByName ? tracepoint : nullptr, program));
  if (!fd.valid()) {
    return FailErrno(errno, std::string("attaching to ") + tracepoint);
  }
  return fd;
}

ksym::Result<wait_stats_record> ReadWaitStats(int map_fd) {
  const int cpus = libbpf_num_possible_cpus();
  if (cpus < 0) return FailErrno(-cpus, "counting the possible CPUs");
  std::vector<wait_cpu> per_cpu(static_cast<size_t>(cpus));
  const uint32_t zero = 0;
  if (bpf_map_lookup_elem(map_fd, &zero, per_cpu.data()) != 0) {
    return FailErrno(errno, "reading the counters of waits");
  }
  wait_stats_record sum = {};
  sum.header.type = PROFILE_RECORD_WAITS;
  for (const wait_cpu& one : per_cpu) {
    sum.stats.thinned += one.stats.thinned;
    sum.stats.unseen += one.stats.unseen;
    sum.stats.crowded += one.stats.crowded;
    sum.stats.untaken += one.stats.untaken;
    sum.stats.ends_full += one.stats.ends_full;
    sum.stats.wakers_unseen += one.stats.wakers_unseen;
    sum.stats.wakers_too_many += one.stats.wakers_too_many;
    sum.stats.wakers_lost += one.stats.wakers_lost;
    sum.stats.wakers_untold += one.stats.wakers_untold;
  }
  return sum;
}

}  // namespace

ksym::Result<std::unique_ptr<Sampler>> WaitSampler::Make(
    BpfObject& object, const WaitConfig& config, Counters counters) {
  const WaitKernel& kernel = config.kernel;
  std::unique_ptr<WaitSampler> sampler(
      new WaitSampler(object, config, counters));
  const WaitParts& parts = sampler->parts_;
  if (kernel.by_interrupt()) {
    auto bells = WaitBells::Make(parts.bells_fd);
    if (!bells) return Fail(std::move(bells.error()));
    sampler->bells_ = std::move(*bells);
  }
  // The programs run from here on and write down which threads stop. No wait
  // counts before Enable() says from when, so that nothing is sampled yet, but
  // more threads are known by then.
  auto resumes = Attach(kernel.tracepoint(), Known::kByName, parts.resumes_fd);
  if (!resumes) return Fail(std::move(resumes.error()));
  auto at_switch = Attach("sched_switch", Known::kByType, parts.switch_fd);
  if (!at_switch) return Fail(std::move(at_switch.error()));
  sampler->resumes_ = std::move(*resumes);
  sampler->switch_ = std::move(*at_switch);
  if (parts.waking_fd >= 0) {
    auto at_waking = Attach("sched_waking", Known::kByType, parts.waking_fd);
    if (!at_waking) return Fail(std::move(at_waking.error()));
    sampler->waking_ = std::move(*at_waking);
  }
  return sampler;
}

ksym::Status WaitSampler::Follow(const CpuList& online) {
  cpus_ = online;
  return {};
}

ksym::Status WaitSampler::Enable() {
  // The program writes the difference of the clocks when this thread goes on:
  // it has to stop for that.
  __atomic_store_n(parts_.own_tid, static_cast<__u32>(::gettid()),
                   __ATOMIC_RELAXED);
  __u64 offset = 0;
  for (int i = 0; i < kNaps && offset == 0; ++i) {
    std::this_thread::sleep_for(kNap);
    offset = __atomic_load_n(parts_.clock_offset, __ATOMIC_RELAXED);
  }
  if (offset == 0) {
    return Fail(ksym::ErrorCode::kUnsupported,
                "the kernel does not tell when threads go on");
  }
  // From here on waits count.
  __atomic_store_n(parts_.from, NowNs() - offset, __ATOMIC_RELEASE);
  return {};
}

// The programs stay attached: a thread that goes on before ReadThreads() comes
// to it is sampled as it does so, with what it waited up to here.
void WaitSampler::Disable() {
  const __u64 offset = __atomic_load_n(parts_.clock_offset, __ATOMIC_RELAXED);
  __atomic_store_n(parts_.began_by, kAnyTime, __ATOMIC_RELAXED);
  __atomic_store_n(parts_.until, NowNs() - offset, __ATOMIC_RELEASE);
}

ksym::Result<std::vector<SampledCount>> WaitSampler::Take(uint32_t set) {
  std::vector<SampledCount> counts;
  auto taken = TakeAll<profile_key, wait_count>(
      parts_.waits_fds[set], [&](const profile_key& key, wait_count sum) {
        const uint32_t kind = key.kind - PROFILE_KIND_RUNNABLE;
        if (kind >= kinds_.size()) return;
        counts.push_back({.key = key,
                          .kind = static_cast<SampleKindId>(kind),
                          .count = sum.count,
                          .value = sum.value_ns});
      });
  if (!taken) return Fail(std::move(taken.error()));
  return counts;
}

ksym::Status WaitSampler::ReadThreads(const RecordTaker& take) {
  auto walked = Walk(take);
  // When sampling begins, that is all.
  if (__atomic_load_n(parts_.until, __ATOMIC_RELAXED) == 0) return walked;
  Detach();
  if (!walked) return walked;
  // No program runs any more: the counters are final.
  return TellStatistics(take);
}

ksym::Result<bool> WaitSampler::ReadSleepers(const RecordTaker& take) {
  if (walks_ != WaitWalks::kIntervals) return false;
  const uint64_t begin_ns = NowNs();
  if (begin_ns < next_walk_ns_) {
    ++walk_stats_.skipped;
    return false;
  }
  const uint64_t cpu_ns = NowNs(CLOCK_THREAD_CPUTIME_ID);
  const __u64 offset = __atomic_load_n(parts_.clock_offset, __ATOMIC_RELAXED);
  const __u64 until = begin_ns - offset;
  __atomic_store_n(parts_.walk_until, until, __ATOMIC_RELEASE);
  const auto walked = Walk(take);
  if (!walked) return Fail(walked.error());
  // Where there are too many the next walk takes what slept in this one, or
  // threads that wake up again and again would be taken before others for ever.
  const bool is_complete =
      __atomic_load_n(parts_.stacks_left, __ATOMIC_RELAXED) != 0;
  __atomic_store_n(parts_.began_by, is_complete ? kAnyTime : until,
                   __ATOMIC_RELAXED);
  const uint64_t took_ns = NowNs(CLOCK_THREAD_CPUTIME_ID) - cpu_ns;
  next_walk_ns_ = begin_ns + took_ns * kWalkShare;
  ++walk_stats_.walks;
  walk_stats_.walk_ns += took_ns;
  const auto told = TellStatistics(take);
  if (!told) return Fail(told.error());
  return true;
}

ksym::Status WaitSampler::Walk(const RecordTaker& take) {
  __atomic_store_n(parts_.stacks_left, kStacksOfWalk, __ATOMIC_RELAXED);
  const uint64_t take_until_ns =
      NowNs() +
      static_cast<uint64_t>(std::chrono::nanoseconds(kTakeWithin).count());
  SleepingStacks stacks(memory_, take);
  return ReadThreadRecords(
      parts_.threads_fd, [&](const profile_record& record, size_t bytes) {
        const bool is_late =
            record.type == PROFILE_RECORD_COPY && NowNs() > take_until_ns;
        if (is_late) {
          __atomic_store_n(parts_.stacks_left, 0, __ATOMIC_RELAXED);
        }
        if (reads_stacks_) {
          take(record, bytes);
        } else {
          stacks.Take(record, bytes);
        }
      });
}

ksym::Status WaitSampler::TellStatistics(const RecordTaker& take) const {
  auto stats = ReadWaitStats(parts_.cpus_fd);
  if (!stats) return Fail(stats.error());
  stats->walks = walk_stats_;
  stats->walks.put_off = __atomic_load_n(parts_.put_off, __ATOMIC_RELAXED);
  take(stats->header, sizeof(*stats));
  return {};
}

// Only when all threads were walked over: until then threads go on, and the
// programs take what they waited. The switch's program goes first, as the other
// one takes the marks that it leaves.
void WaitSampler::Detach() {
  waking_ = ksym::UniqueFd();
  switch_ = ksym::UniqueFd();
  resumes_ = ksym::UniqueFd();
  // An error here costs a sample at the most.
  (void)WaitForRunningPrograms();
}

ksym::Result<profile_stats> WaitSampler::ReadStats(uint32_t set) {
  if (counters_ == Counters::kByAnother) return profile_stats{};
  return object_.ReadStats(set);
}

}  // namespace profd
