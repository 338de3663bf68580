// SPDX-License-Identifier: Apache-2.0
#include "daemon/capture/capture.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <memory>
#include <utility>
#include <variant>

#include "daemon/base/now_ns.h"
#include "daemon/base/steady_clock.h"
#include "daemon/capture/bpf_config.h"
#include "daemon/capture/capture_metadata.h"
#include "daemon/capture/grace_period.h"
#include "daemon/capture/interval_taker.h"
#include "daemon/capture/make_samplers.h"
#include "daemon/capture/news_bell.h"
#include "daemon/capture/running_processes.h"
#include "daemon/capture/sampled_stacks.h"
#include "daemon/capture/sampler.h"
#include "daemon/capture/thread_dump.h"
#include "daemon/perf/privileges.h"
#include "daemon/profile/raw_waker.h"
#include "daemon/profile/wait_reason.h"
#include "daemon/track/kernel_watch.h"
#include "daemon/track/process_watch.h"
#include "daemon/track/side_band.h"
#include "daemon/unwind/unwind_tables.h"

namespace profd {
namespace {

// A ring that was filling is read often for so long after: floods of the side
// band pause and go on.
constexpr uint64_t kFloodLastsNs = 1'000'000'000;
// How often everything that takes longer empties the ring and the side band. A
// storm of mappings fills its ring within 100 ms.
constexpr uint64_t kRoomPeriodNs = 50'000'000;

using ksym::Fail;

static_assert(kWaitReason == WAIT_FRAME_KIND);
static_assert(kWaker == WAKER_FRAME_KIND);

}  // namespace

class Capture::Impl {
 public:
  // The parts from which samples and reports come.
  struct Sources {
    std::unique_ptr<BpfObject> object;
    Samplers samplers;
    SideBand side_band;
  };

  Impl(CaptureOptions options, CaptureMetadata metadata, Sources sources)
      : object_(std::move(sources.object)),
        samplers_(std::move(sources.samplers)),
        side_band_(std::move(sources.side_band)),
        kernel_watch_(object_->watches_modules()
                          ? KernelWatch::Modules::kTold
                          : KernelWatch::Modules::kByUevents),
        on_process_(std::move(options.on_process)),
        on_sampled_(std::move(options.on_sampled)),
        watch_([this](const ksym::ProcessImage& image) { OnProcess(image); },
               [this](const ksym::ProcessId& id) { stacks_.Forget(id); },
               [this] { MakeRoomIfDue(); }),
        running_(options.bpf, watch_),
        stacks_(options, {.object = *object_,
                          .watch = watch_,
                          .make_room = [this] { MakeRoom(); },
                          .make_room_if_due = [this] { MakeRoomIfDue(); }}),
        interval_({.object = *object_,
                   .samplers = samplers_,
                   .stacks = stacks_,
                   .watch = watch_,
                   .kernel_watch = kernel_watch_,
                   .thread_times = thread_times_},
                  std::move(metadata), options.bpf.cpu_samples ? 1 : 0) {
    // A program knows a process that is new by its tables, which are not there
    // yet. And samplers of waits have rings of their own that have to be
    // emptied.
    if (stacks_.tables() == nullptr || options.bpf.waits) return;
    auto bell = NewsBell::Open(*object_);
    // Without one it is never quiet.
    if (bell) bell_ = std::move(*bell);
  }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  const CaptureMetadata& metadata() const { return interval_.metadata(); }

  void Prepare() {
    if (UnwindTables* tables = stacks_.tables()) running_.Prepare(*tables);
  }

  ksym::Status Enable() {
    interval_.Begin();
    // Before the first sample, both: without the second no stack is copied.
    object_->SetSlicePhase(interval_.began().SlicePhase());
    stacks_.AllowCopies();
    // Waits count from Enable() on. Then threads that sleep are written down as
    // they are; those that have gone on by then are known.
    auto enabled = samplers_.Enable();
    if (enabled) enabled = ReadThreads();
    if (!enabled) return enabled;
    // Sampling goes on meanwhile.
    running_.ReadAll();
    if (UnwindTables* tables = stacks_.tables()) {
      running_.ExpectBusy(*tables, [this] { MakeRoomIfDue(); });
    }
    return {};
  }

  Advice Poll() {
    bell_.BeginPoll();
    TakeReports();
    side_band_.Empty();
    if (side_band_.is_filling()) {
      filling_until_ns_ = NowNs() + kFloodLastsNs;
    }
    bell_.EndPoll();
    return kernel_watch_.Poll() ? Advice::kDrainSoon : Advice::kGoOn;
  }

  // The kernel reports what a process did before a sample before the sample
  // itself: with the hints taken first, the reports that are taken then go far
  // enough.
  void TakeReports() {
    ConsumeRing();
    // Not those that come into the ring from here on.
    std::vector<SampleHint> hints = std::exchange(hints_, {});
    std::ranges::copy(stacks_.TakeHints(), std::back_inserter(hints));
    if (object_->ModulesChanged()) kernel_watch_.TableChanged();
    const uint64_t now_ns = NowNs();
    std::vector<SideBandEvent> events = side_band_.Read(now_ns);
    for (SideBandEvent& event : events) {
      if (auto* change = std::get_if<ksym::KernelSymbolChange>(&event.report)) {
        kernel_watch_.Add(event.time_ns, std::move(*change));
      } else if (const auto* lost = std::get_if<LostReport>(&event.report)) {
        const bool is_of_kernel = lost->of == LostReport::Of::kProcesses;
        if (!lost->is_known && is_of_kernel) kernel_watch_.TableChanged();
        // A process with too many reports is read instead: nothing is lost.
        if (lost->pid == 0) interval_.accounts().AddLostReports(lost->count);
      }
    }
    watch_.Apply(std::move(events), now_ns);
    MakeRoom();
    watch_.See(hints);
    for (const SampleHint& hint : hints) {
      if (on_sampled_) on_sampled_(hint.id, hint.cgroup);
    }
    watch_.TellObserver();
    MakeRoom();
    stacks_.Walk(hints);
  }

  // Empties what the kernel fills; the next TakeReports() works on it.
  void MakeRoom() {
    ConsumeRing();
    side_band_.Empty();
    room_made_ns_ = NowNs();
  }
  void MakeRoomIfDue() {
    if (NowNs() - room_made_ns_ >= kRoomPeriodNs) MakeRoom();
  }

  void ConsumeRing() {
    samplers_.MakeRoom();
    object_->ConsumeRecords([this](const profile_record& record, size_t bytes) {
      OnRecord(record, bytes);
    });
  }

  void BuildTables(SteadyClock::duration budget,
                   SteadyClock::time_point deadline) {
    UnwindTables* const tables = stacks_.tables();
    if (tables == nullptr) return;
    tables->Build(budget, deadline);
    MakeRoom();
  }

  bool IsBuildingTables() const {
    const UnwindTables* const tables = stacks_.tables();
    return tables != nullptr && tables->IsBuilding();
  }

  bool IsNaming() const { return stacks_.is_naming(); }

  bool IsFilling() const {
    return side_band_.is_filling() || NowNs() < filling_until_ns_;
  }

  const NewsBell& bell() const { return bell_; }

  RuntimeStatistics runtime_statistics() const {
    return stacks_.runtimes().statistics();
  }

  const ThreadTimes& thread_times() const { return thread_times_; }

  const std::vector<DumpedThread>& dumped_threads() const { return dumped_; }

  UnwindStatistics unwind_statistics() const {
    return interval_.unwind_statistics();
  }

  ksym::Result<RawProfile> Drain(std::chrono::milliseconds patience) {
    // First, as a CPU that came is not sampled until then.
    auto followed = FollowCpus();
    if (!followed) return Fail(std::move(followed.error()));
    // Programs that begin from here on write to the other set. No sample of
    // that is older than the first of these times, none of this set is younger
    // than the second.
    const uint64_t flip_ns = NowNs();
    const uint32_t set = object_->Flip();
    const uint64_t end_ns = NowNs();
    // The wait is long enough for a ring to fill.
    MakeRoom();
    auto waited = WaitForRunningPrograms();
    if (!waited) return Fail(std::move(waited.error()));
    // Programs that ran at the flip have ended: what was freed before is read
    // by nobody, and what they sent is in the ring.
    if (UnwindTables* tables = stacks_.tables()) tables->Recycle();
    TakeReports();
    return TakeSet({set, flip_ns, end_ns}, patience);
  }

  ksym::Status WalkSleepers(std::chrono::milliseconds patience) {
    walk_patience_ends_ = SteadyClock::now() + patience;
    const auto walked = samplers_.ReadSleepers(
        [this](const profile_record& record, size_t bytes) {
          OnRecord(record, bytes);
          if (record.type == PROFILE_RECORD_COPY) WalkIfMany(record.set);
        });
    if (!walked) return Fail(walked.error());
    if (*walked) stacks_.EndWalk();
    MakeRoom();
    return {};
  }

  WaitStatistics wait_statistics() const {
    return {.waits = thread_times_.statistics(),
            .walks = thread_times_.walks(),
            .sleepers = stacks_.sleepers()};
  }

  ksym::Result<RawProfile> Stop(std::chrono::milliseconds patience) {
    // Nothing counts that happens from here on; the times of the last interval
    // are read however short it was.
    samplers_.Disable();
    interval_.accounts().ReadTimesNext();
    const uint64_t end_ns = NowNs();
    walk_patience_ends_ = SteadyClock::now() + patience;
    // No program runs when it returns, so there is nothing to wait for.
    auto read = ReadThreads();
    if (!read) return Fail(std::move(read.error()));
    TakeReports();
    return TakeSet({object_->Flip(), end_ns, end_ns}, patience);
  }

 private:
  ksym::Status FollowCpus() {
    const auto online = ReadOnlineCpus();
    if (!online) return {};
    auto followed = samplers_.Follow(*online);
    if (followed) followed = side_band_.Follow(*online);
    return followed;
  }

  ksym::Status ReadThreads() {
    return samplers_.ReadThreads(
        [this](const profile_record& record, size_t bytes) {
          OnRecord(record, bytes);
        });
  }

  void OnThread(const wait_thread_record& record, size_t bytes) {
    if (bytes < sizeof(record)) return;
    if (record.last != 0) {
      thread_times_.AddLast(record);
    } else {
      thread_times_.AddFirst(record);
    }
  }

  void OnDumped(const dump_thread_record& record, size_t bytes) {
    if (bytes < sizeof(record)) return;
    dumped_.push_back(DumpedThreadOf(record));
    WalkIfMany(record.header.set);
  }

  // Copies of all threads' stacks would fill the memory: they are walked
  // whenever there are many.
  void WalkIfMany(uint32_t set) {
    if (set >= PROFILE_SETS || !stacks_.MustWalkSoon()) return;
    TakeReports();
    stacks_.WalkRest(set, std::chrono::ceil<std::chrono::milliseconds>(
                              std::max(walk_patience_ends_ - SteadyClock::now(),
                                       SteadyClock::duration(0))));
  }

  void OnProcess(const ksym::ProcessImage& image) {
    if (on_process_) on_process_(image);
    stacks_.Update(image);
  }

  void OnRecord(const profile_record& record, size_t bytes) {
    if (record.set >= PROFILE_SETS) return;
    if (record.type == PROFILE_RECORD_PROCESS &&
        bytes >= sizeof(profile_process_record)) {
      const auto& process =
          reinterpret_cast<const profile_process_record&>(record);
      hints_.push_back({{process.tgid, process.exec_count, process.start_ns},
                        record.set,
                        process.time_ns,
                        process.cgroup});
    } else if (record.type == PROFILE_RECORD_THREAD) {
      OnThread(reinterpret_cast<const wait_thread_record&>(record), bytes);
    } else if (record.type == PROFILE_RECORD_DUMP) {
      OnDumped(reinterpret_cast<const dump_thread_record&>(record), bytes);
    } else if (record.type == PROFILE_RECORD_WAITS) {
      thread_times_.SetStatistics(
          reinterpret_cast<const wait_stats_record&>(record));
    } else {
      stacks_.Add(record, bytes);
    }
  }

  ksym::Result<RawProfile> TakeSet(const TakenSet& taken,
                                   std::chrono::milliseconds patience) {
    auto profile = interval_.Take(taken, patience);
    MakeRoom();
    return profile;
  }

  std::unique_ptr<BpfObject> object_;
  Samplers samplers_;  // after the object: closed first
  NewsBell bell_;
  SideBand side_band_;
  KernelWatch kernel_watch_;
  std::function<void(const ksym::ProcessImage&)> on_process_;
  std::function<void(const ksym::ProcessId&, uint64_t)> on_sampled_;
  ProcessWatch watch_;
  RunningProcesses running_;
  std::vector<SampleHint> hints_;
  ThreadTimes thread_times_;
  std::vector<DumpedThread> dumped_;
  SampledStacks stacks_;
  IntervalTaker interval_;
  SteadyClock::time_point walk_patience_ends_;
  uint64_t room_made_ns_ = 0;      // last
  uint64_t filling_until_ns_ = 0;  // the side band may be
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
  std::optional<EventSpec> event;
  if (options.bpf.cpu_samples) {
    auto chosen = ChooseEvent(options.event, options.rate, cpus.front());
    if (!chosen) return Fail(chosen.error());
    event = std::move(*chosen);
  }

  CaptureMetadata metadata = DescribeHost();
  const BpfConfig& config = options.bpf;
  auto completed = CompleteConfig(options, cpus.size(), metadata);
  if (!completed) return Fail(std::move(completed.error()));
  auto object = BpfObject::Load(config);
  if (!object) return Fail(std::move(object.error()));
  Impl::Sources sources{
      .object = std::make_unique<BpfObject>(std::move(*object)),
      .samplers = {},
      .side_band = SideBand({.kernel_symbols = config.kernel_stacks,
                             .processes = config.user_stacks})};
  auto made = MakeSamplers(options, event, *sources.object);
  if (!made) return Fail(std::move(made.error()));
  sources.samplers = std::move(*made);

  metadata.kinds = sources.samplers.kinds();
  metadata.cpus = FormatCpuList(cpus);
  // Events are opened here, and silent: Enable() has only to switch them on.
  auto followed = sources.samplers.Follow(*online);
  if (followed) followed = sources.side_band.Follow(*online);
  if (!followed) return Fail(std::move(followed.error()));
  auto impl = std::make_unique<Impl>(std::move(options), std::move(metadata),
                                     std::move(sources));
  impl->Prepare();
  return Capture(std::move(impl));
}

const CaptureMetadata& Capture::metadata() const { return impl_->metadata(); }
ksym::Status Capture::Enable() { return impl_->Enable(); }
Capture::Advice Capture::Poll() { return impl_->Poll(); }
void Capture::BuildTables(SteadyClock::duration budget,
                          SteadyClock::time_point deadline) {
  impl_->BuildTables(budget, deadline);
}
bool Capture::IsBuildingTables() const { return impl_->IsBuildingTables(); }
bool Capture::IsNaming() const { return impl_->IsNaming(); }
bool Capture::IsFilling() const { return impl_->IsFilling(); }
bool Capture::IsQuiet() const { return impl_->bell().IsQuiet(); }
int Capture::bell() const { return impl_->bell().fd(); }
UnwindStatistics Capture::unwind_statistics() const {
  return impl_->unwind_statistics();
}
RuntimeStatistics Capture::runtime_statistics() const {
  return impl_->runtime_statistics();
}
ksym::Status Capture::WalkSleepers(std::chrono::milliseconds patience) {
  return impl_->WalkSleepers(patience);
}
WaitStatistics Capture::wait_statistics() const {
  return impl_->wait_statistics();
}
const ThreadTimes& Capture::thread_times() const {
  return impl_->thread_times();
}
const std::vector<DumpedThread>& Capture::dumped_threads() const {
  return impl_->dumped_threads();
}
ksym::Result<RawProfile> Capture::Drain(std::chrono::milliseconds patience) {
  return impl_->Drain(patience);
}
ksym::Result<RawProfile> Capture::Stop(std::chrono::milliseconds patience) {
  return impl_->Stop(patience);
}

}  // namespace profd
