#include "daemon/capture/capture.h"

#include <fmt/format.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstring>
#include <unordered_map>
#include <utility>
#include <variant>

#include "daemon/capture/cpu_events.h"
#include "daemon/capture/grace_period.h"
#include "daemon/capture/kernel_watch.h"
#include "daemon/capture/privileges.h"
#include "daemon/capture/process_watch.h"
#include "daemon/capture/side_band.h"
#include "ksym/base/file.h"
#include "ksym/base/text.h"

namespace profd {
namespace {

using ksym::Fail;

static_assert(kNoStack == PROFILE_STACK_NONE);
static_assert(kFaultedStack == PROFILE_STACK_FAULT);
static_assert(kCollidedStack == PROFILE_STACK_COLLIDED);
static_assert(kFirstStackId == PROFILE_STACK_FIRST_ID);

uint64_t NowNs(clockid_t clock) {
  timespec now = {};
  ::clock_gettime(clock, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 +
         static_cast<uint64_t>(now.tv_nsec);
}

// What the kernel walks at the most, whatever a program asks for.
uint32_t KernelStackDepthLimit() {
  const auto text = ksym::ReadFile("/proc/sys/kernel/perf_event_max_stack", 64);
  if (!text) return 127;
  std::string_view line = *text;
  return ksym::ParseUnsigned<uint32_t>(ksym::TakeField(line, '\n'), 10)
      .value_or(127);
}

// Room for what a quarter of a second can bring at most, if every sample has
// two new stacks of full depth; several times what comes between two polls.
// Each byte of it counts twice in the resident set, as the kernel maps the
// ring twice in a row, so it is no larger than that.
uint32_t RingBytesFor(SamplingRate rate, size_t cpus, uint32_t depth) {
  constexpr uint64_t kLeast = 512 << 10;
  constexpr uint64_t kMost = 16 << 20;
  if (rate.frequency_hz == 0) return 4 << 20;  // any rate may come
  const uint64_t stack_bytes = PROFILE_STACK_RECORD_BYTES(uint64_t{depth});
  const uint64_t samples =
      std::min(rate.frequency_hz, uint64_t{1} << 24) * cpus / 4;
  return static_cast<uint32_t>(
      std::bit_ceil(std::clamp(2 * samples * stack_bytes, kLeast, kMost)));
}

CaptureMetadata DescribeHost() {
  CaptureMetadata metadata;
  metadata.version = KSYM_VERSION;
  utsname host = {};
  if (::uname(&host) == 0) {
    metadata.hostname = host.nodename;
    metadata.kernel_release = host.release;
    metadata.architecture = host.machine;
  }
  return metadata;
}

std::string CommOf(const profile_key& key) {
  return {key.comm, ::strnlen(key.comm, sizeof(key.comm))};
}

ksym::ProcessId ProcessOf(const profile_key& key) {
  return {key.tgid, key.exec_count, key.start_ns};
}

}  // namespace

class Capture::Impl {
 public:
  Impl(CaptureOptions options, CaptureMetadata metadata, BpfSampler sampler,
       CpuEvents events, SideBand side_band)
      : metadata_(std::move(metadata)),
        reads_processes_(options.sampler.user_stacks),
        sampler_(std::move(sampler)),
        events_(std::move(events)),
        side_band_(std::move(side_band)),
        kernel_watch_(sampler_.watches_modules()
                          ? KernelWatch::Modules::kTold
                          : KernelWatch::Modules::kByUevents),
        watch_(std::move(options.on_process)) {}

  const CaptureMetadata& metadata() const { return metadata_; }

  ksym::Status Enable() {
    metadata_.start_unix_ns = NowNs(CLOCK_REALTIME);
    interval_start_ns_ = NowNs(CLOCK_MONOTONIC);
    auto enabled = events_.Enable();
    // Sampling goes on meanwhile.
    if (enabled && reads_processes_) watch_.ReadAll();
    return enabled;
  }

  Advice Poll() {
    TakeReports();
    return kernel_watch_.Poll() ? Advice::kDrainSoon : Advice::kGoOn;
  }

  // What a process did before a sample was reported before the sample: with
  // the hints taken first, the reports that are taken then go far enough.
  void TakeReports() {
    ConsumeRing();
    std::vector<SideBandEvent> events = side_band_.Read();
    for (SideBandEvent& event : events) {
      if (auto* change = std::get_if<ksym::KernelSymbolChange>(&event.report)) {
        kernel_watch_.Add(event.time_ns, std::move(*change));
      } else if (const auto* lost = std::get_if<LostReport>(&event.report)) {
        kernel_watch_.TableChanged();
        side_band_lost_ += lost->count;
      }
    }
    watch_.Apply(std::move(events));
    for (const SampleHint& hint : std::exchange(hints_, {})) watch_.See(hint);
    watch_.TellObserver();
  }

  void ConsumeRing() {
    sampler_.ConsumeRecords([this](const profile_record& record, size_t bytes) {
      OnRecord(record, bytes);
    });
  }

  ksym::Result<RawProfile> Drain() {
    if (const auto online = ReadOnlineCpus()) {
      auto followed = events_.Follow(*online);
      if (followed) followed = side_band_.Follow(*online);
      if (!followed) return Fail(std::move(followed.error()));
    }
    const uint32_t set = sampler_.Flip();
    const uint64_t end_ns = NowNs(CLOCK_MONOTONIC);
    auto waited = WaitForRunningPrograms();
    if (!waited) return Fail(std::move(waited.error()));
    TakeReports();
    return TakeSet(set, end_ns);
  }

  ksym::Result<RawProfile> Stop() {
    events_.Disable();
    const uint64_t end_ns = NowNs(CLOCK_MONOTONIC);
    TakeReports();
    return TakeSet(sampler_.Flip(), end_ns);
  }

 private:
  void OnRecord(const profile_record& record, size_t bytes) {
    if (record.set >= PROFILE_SETS) return;
    if (record.type == PROFILE_RECORD_MODULE) kernel_watch_.TableChanged();
    if (record.type == PROFILE_RECORD_PROCESS &&
        bytes >= sizeof(profile_process_record)) {
      const auto& process =
          reinterpret_cast<const profile_process_record&>(record);
      hints_.push_back({{process.tgid, process.exec_count, process.start_ns},
                        record.set,
                        process.time_ns});
    } else if (record.type == PROFILE_RECORD_STACK) {
      const auto& stack = reinterpret_cast<const profile_stack_record&>(record);
      if (bytes < PROFILE_STACK_RECORD_BYTES(stack.depth)) return;
      stacks_[record.set].try_emplace(
          stack.id, RawStack{{stack.frames, stack.frames + stack.depth},
                             stack.truncated != 0});
    }
  }

  ksym::Result<RawProfile> TakeSet(uint32_t set, uint64_t end_ns) {
    const TakenSet taken = {set, end_ns};
    auto counts = sampler_.TakeCounts(set);
    if (!counts) return Fail(std::move(counts.error()));
    RawProfile profile;
    for (const auto& [key, count] : *counts) {
      AddSample(taken, key, count, profile);
    }
    auto cleared = sampler_.ClearStacks(set);
    if (!cleared) return Fail(std::move(cleared.error()));
    stacks_[set].clear();
    watch_.EndInterval(taken);
    auto accounted = Account(set, profile);
    if (!accounted) return Fail(std::move(accounted.error()));
    DescribeInterval(end_ns, profile);
    kernel_watch_.EndInterval(end_ns, profile);
    return profile;
  }

  void AddSample(const TakenSet& taken, const profile_key& key, uint64_t count,
                 RawProfile& profile) {
    if (!TakeStack(taken.set, key.user_stack, profile) ||
        !TakeStack(taken.set, key.kernel_stack, profile)) {
      Count(profile, LossCause::kStackMissing, count);
      return;
    }
    CountDamage(key, count, profile);
    RawSample sample = {.process = ProcessOf(key),
                        .tid = key.tid,
                        .comm = CommOf(key),
                        .user_stack = key.user_stack,
                        .kernel_stack = key.kernel_stack,
                        .count = count};
    if (key.user_stack >= kFirstStackId) {
      const auto& frames = profile.stacks.at(key.user_stack).frames;
      ProcessWatch::Answer answer = watch_.Find(sample.process, frames, taken);
      sample.process = answer.id;
      if (answer.known) {
        profile.images[answer.id] = std::move(answer.image);
      }
    }
    profile.accounting.emitted += count;
    profile.samples.push_back(std::move(sample));
  }

  // Puts the stack into the profile; false when its frames are not known.
  bool TakeStack(uint32_t set, StackId id, RawProfile& profile) {
    if (id < kFirstStackId || profile.stacks.contains(id)) return true;
    if (sampler_.store() == StackStore::kStackId) {
      auto frames = sampler_.ReadStackTrace(
          set, static_cast<uint32_t>(id - kFirstStackId));
      if (frames.empty()) return false;
      const bool truncated = frames.size() >= metadata_.max_stack_depth;
      profile.stacks.emplace(id, RawStack{std::move(frames), truncated});
      return true;
    }
    const auto at = stacks_[set].find(id);
    if (at == stacks_[set].end()) return false;
    profile.stacks.emplace(id, at->second);
    return true;
  }

  static void Count(RawProfile& profile, LossCause cause, uint64_t count) {
    profile.accounting.lost_by_cause[static_cast<size_t>(cause)] += count;
  }

  static void CountDamage(const profile_key& key, uint64_t count,
                          RawProfile& profile) {
    const auto add = [&](DamageCause cause) {
      profile.accounting.damaged_by_cause[static_cast<size_t>(cause)] += count;
    };
    const auto is_truncated = [&](StackId id) {
      return id >= kFirstStackId && profile.stacks.at(id).truncated;
    };
    if (key.user_stack == kFaultedStack || key.kernel_stack == kFaultedStack) {
      add(DamageCause::kStackFault);
    }
    if (key.user_stack == kCollidedStack ||
        key.kernel_stack == kCollidedStack) {
      add(DamageCause::kCollision);
    }
    if (is_truncated(key.user_stack) || is_truncated(key.kernel_stack)) {
      add(DamageCause::kTruncated);
    }
  }

  // The counters in BPF only grow; an interval is a difference.
  ksym::Status Account(uint32_t set, RawProfile& profile) {
    const auto stats = sampler_.ReadStats(set);
    if (!stats) return Fail(stats.error());
    const profile_stats before = std::exchange(stats_[set], *stats);
    WarnOfLostReports();
    if (stats->follow_full != before.follow_full) {
      metadata_.warnings.emplace_back(
          "too many child processes: some are not in the profile");
    }
    profile.accounting.taken = stats->taken - before.taken;
    Count(profile, LossCause::kCountsFull,
          stats->lost_counts_full - before.lost_counts_full);
    Count(profile, LossCause::kRingFull,
          stats->lost_ring_full - before.lost_ring_full);
    const SamplingEvent::Times times = events_.ReadTimes();
    profile.accounting.time_enabled_ns = times.enabled_ns - times_.enabled_ns;
    profile.accounting.time_running_ns = times.running_ns - times_.running_ns;
    times_ = times;
    return {};
  }

  void WarnOfLostReports() {
    if (side_band_lost_ == 0 || warned_of_lost_reports_) return;
    warned_of_lost_reports_ = true;
    metadata_.warnings.emplace_back(
        "reports of mapped files were lost: processes that ended at once may "
        "lack names");
  }

  void DescribeInterval(uint64_t end_ns, RawProfile& profile) {
    metadata_.cpus = FormatCpuList(events_.cpus());
    profile.metadata = metadata_;
    metadata_.warnings.clear();  // each is given once
    profile.metadata.duration_ns = end_ns - interval_start_ns_;
    metadata_.start_unix_ns += end_ns - interval_start_ns_;
    interval_start_ns_ = end_ns;
  }

  CaptureMetadata metadata_;
  bool reads_processes_;
  BpfSampler sampler_;
  CpuEvents events_;  // after the sampler: closed first
  SideBand side_band_;
  KernelWatch kernel_watch_;
  ProcessWatch watch_;
  std::vector<SampleHint> hints_;
  uint64_t side_band_lost_ = 0;
  bool warned_of_lost_reports_ = false;
  // Frames that came through the ring, by set.
  std::array<std::unordered_map<StackId, RawStack>, PROFILE_SETS> stacks_;
  std::array<profile_stats, PROFILE_SETS> stats_ = {};
  SamplingEvent::Times times_;
  uint64_t interval_start_ns_ = 0;
};

Capture::Capture(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Capture::Capture(Capture&&) noexcept = default;
Capture& Capture::operator=(Capture&&) noexcept = default;
Capture::~Capture() = default;

ksym::Result<Capture> Capture::Start(CaptureOptions options) {
  auto allowed = CheckCapturePrivileges();
  if (!allowed) return Fail(std::move(allowed.error()));
  RaiseLimits();
  const auto online = ReadOnlineCpus();
  if (!online) return Fail(online.error());
  const CpuList wanted = options.cpus.value_or(*online);
  const CpuList cpus = Intersect(wanted, *online);
  if (cpus.empty()) {
    return Fail(ksym::ErrorCode::kNotFound,
                fmt::format("none of the CPUs {} is online (there are {})",
                            FormatCpuList(wanted), FormatCpuList(*online)));
  }
  const auto event = ChooseEvent(options.event, options.rate, cpus.front());
  if (!event) return Fail(event.error());

  CaptureMetadata metadata = DescribeHost();
  SamplerConfig& config = options.sampler;
  config.store = options.store.value_or(
      KernelHasRingBuffer() ? StackStore::kExact : StackStore::kStackId);
  if (config.stack_entries == 0) {
    config.stack_entries = config.store == StackStore::kExact
                               ? kExactStackEntries
                               : kStackIdEntries;
  }
  const uint32_t limit = KernelStackDepthLimit();
  if (config.max_stack_depth > limit) {
    metadata.warnings.push_back(fmt::format(
        "kernel.perf_event_max_stack is {}: deeper stacks are truncated "
        "(sysctl -w kernel.perf_event_max_stack={})",
        limit, config.max_stack_depth));
    config.max_stack_depth = limit;
  }
  if (config.ring_bytes == 0) {
    config.ring_bytes =
        RingBytesFor(options.rate, cpus.size(), config.max_stack_depth);
  }
  auto sampler = BpfSampler::Load(config);
  if (!sampler) return Fail(std::move(sampler.error()));

  metadata.event = event->name;
  metadata.frequency_hz = options.rate.frequency_hz;
  metadata.count_period = options.rate.count_period;
  metadata.max_stack_depth = config.max_stack_depth;
  metadata.stack_store =
      config.store == StackStore::kExact ? "exact" : "stackid";
  metadata.cpus = FormatCpuList(cpus);
  CpuEvents events(
      *event, options.rate,
      config.include_idle ? IdleSamples::kInclude : IdleSamples::kExclude,
      options.cpus, sampler->program_fd());
  auto followed = events.Follow(*online);
  if (!followed) return Fail(std::move(followed.error()));
  SideBand side_band({.kernel_symbols = config.kernel_stacks,
                      .processes = config.user_stacks});
  followed = side_band.Follow(*online);
  if (!followed) return Fail(std::move(followed.error()));
  return Capture(std::make_unique<Impl>(std::move(options), std::move(metadata),
                                        std::move(*sampler), std::move(events),
                                        std::move(side_band)));
}

const CaptureMetadata& Capture::metadata() const { return impl_->metadata(); }
ksym::Status Capture::Enable() { return impl_->Enable(); }
Capture::Advice Capture::Poll() { return impl_->Poll(); }
ksym::Result<RawProfile> Capture::Drain() { return impl_->Drain(); }
ksym::Result<RawProfile> Capture::Stop() { return impl_->Stop(); }

}  // namespace profd
