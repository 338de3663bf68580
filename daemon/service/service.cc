// SPDX-License-Identifier: Apache-2.0
#include "daemon/service/service.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <ctime>
#include <memory>
#include <string>
#include <utility>

#include "daemon/base/freed_memory.h"
#include "daemon/base/now_ns.h"
#include "daemon/base/own_priority.h"
#include "daemon/capture/capture.h"
#include "daemon/capture/capture_loop.h"
#include "daemon/files/guarded_opener.h"
#include "daemon/service/capture_counters.h"
#include "daemon/service/capture_settings.h"
#include "daemon/service/cgroup_names.h"
#include "daemon/service/counters.h"
#include "daemon/service/guardrail.h"
#include "daemon/service/interval_clock.h"
#include "daemon/service/labels.h"
#include "daemon/service/log.h"
#include "daemon/service/metrics.h"
#include "daemon/service/process_labels.h"
#include "daemon/service/service_outputs.h"
#include "daemon/service/service_signals.h"
#include "daemon/service/systemd_notify.h"

namespace profd {
namespace {

using Clock = std::chrono::steady_clock;
using Edge = NamingThread::Edge;
using ksym::Fail;
using ksym::Status;
using std::chrono::milliseconds;

constexpr CapturePace kPace = {
    .poll = milliseconds(100),
    .poll_building = milliseconds(20),
    .poll_filling = milliseconds(10),
    .poll_naming = milliseconds(20),
    // The sampler rings for what is new; what a known process maps anew has
    // its tables some time after this. Three polls a second.
    .poll_quiet = milliseconds(350),
    // The parts of a profile. A drain that took long is not made up for: on a
    // busy machine fewer parts cost less, and a profile is whole all the same.
    .drain = milliseconds(1000),
    .drain_gap = milliseconds(1000),
    // An eighth of a CPU; right after a start there are many.
    .tables_budget = milliseconds(12),
    .tables_patience = Capture::kTablesPatience};
// The allowance of the thread that samples.
constexpr PriorityAllowance kSamplingAllowance = {
    .at_once = milliseconds(500), .per_second = milliseconds(100)};
// From SIGTERM to the end, less what is left for the rest.
constexpr milliseconds kFinishWithin(1700);
// The part of it for tables that the last stacks need, of which there can be
// many with waits.
constexpr milliseconds kLastTables(500);

// A running service: the capture in this thread, names and files in others.
class Service {
 public:
  // What the service has of its surroundings.
  struct Means {
    ServiceSignals signals;
    SystemdNotify notify;
    OwnPriority priority;
    std::shared_ptr<GuardedOpener> opener;
  };

  Service(const ServiceOptions& options, ServiceConfig config, Means means)
      : options_(options),
        priority_(means.priority),
        opener_(std::move(means.opener)),
        wanted_(config),
        config_(std::move(config)),
        signals_(std::move(means.signals)),
        notify_(std::move(means.notify)),
        intervals_(std::chrono::seconds(config_.interval_seconds),
                   NowNs(CLOCK_REALTIME)),
        guardrail_(Clock::now(), OwnUse()) {}

  Status Start() {
    auto prepared = PrepareDirectory(std::string(config_.files.target()));
    if (!prepared) return prepared;
    auto capture = StartCapture(config_);
    if (!capture) return Fail(std::move(capture.error()));
    // It calls back only once it is enabled, so outputs_, which it gives to,
    // may be made after it.
    capture_ = std::make_unique<Capture>(std::move(*capture));
    auto outputs = ServiceOutputs::Start(config_, counters_, opener_);
    if (!outputs) return Fail(std::move(outputs.error()));
    outputs_ = std::move(*outputs);
    // Samples come from here on, so all that takes them is there.
    auto enabled = EnableCapture(config_);
    if (!enabled) return enabled;
    BeginLoop();
    ShowRates();
    SayStarted();
    notify_.Send("READY=1\nSTATUS=" + Describe());
    // What loaded the sampler is not needed for months.
    ReturnFilePages();
    return {};
  }

  // Until a signal ends it, or the capture fails.
  int Run() {
    Status sampled = Sample();
    notify_.Send("STOPPING=1");
    const bool finished = Finish();
    if (!sampled) Log(LogLevel::kError, sampled.error().message());
    return sampled && finished ? kServiceOk : kServiceFailure;
  }

 private:
  // Without waits where these cannot be sampled; the configuration says so
  // then.
  ksym::Result<Capture> StartCapture(ServiceConfig& config) {
    auto capture = TryCapture(config);
    if (capture || !config.waiting.enabled) return capture;
    const ksym::Error why = std::move(capture.error());
    config.waiting.enabled = false;
    capture = TryCapture(config);
    if (capture) SayNoWaits(why);
    return capture;
  }

  // The same of one that is in capture_ and was made with that configuration.
  Status EnableCapture(ServiceConfig& config) {
    auto enabled = capture_->Enable();
    if (enabled || !config.waiting.enabled) return enabled;
    SayNoWaits(enabled.error());
    config.waiting.enabled = false;
    auto capture = TryCapture(config);
    if (!capture) return Fail(std::move(capture.error()));
    *capture_ = std::move(*capture);
    return capture_->Enable();
  }

  static void SayNoWaits(const ksym::Error& why) {
    Log(LogLevel::kError,
        "threads that wait are not sampled, only CPUs: " + why.message());
  }

  ksym::Result<Capture> TryCapture(const ServiceConfig& config) {
    CaptureOptions options = MakeCaptureOptions(config);
    options.opener = opener_;
    options.on_process = [this](const ksym::ProcessImage& image) {
      outputs_->naming().Pin(image);
    };
    options.on_sampled = [this](const ksym::ProcessId& process,
                                uint64_t cgroup) {
      cgroups_.NoteSample(process, cgroup);
      labels_.NoteSample(process, cgroups_.PathOfProcess(process));
    };
    return Capture::Start(std::move(options));
  }

  // Once the capture is enabled.
  void BeginLoop() {
    loop_ = std::make_unique<CaptureLoop>(
        *capture_, kPace, CaptureTimes::Span{.begin = Clock::now()});
  }

  std::string Describe() const {
    return fmt::format("sampling {} at {} Hz{}, a profile every {} s",
                       capture_->metadata().kinds.front().event,
                       config_.frequency_hz, DescribeWaits(config_),
                       config_.interval_seconds);
  }

  static std::string DescribeWaits(const ServiceConfig& config) {
    if (!config.waiting.enabled) return "";
    return fmt::format(" and waits at {} Hz", config.waiting.frequency_hz);
  }

  void ShowRates() {
    counters_.frequency_hz = config_.frequency_hz;
    counters_.waiting_frequency_hz =
        config_.waiting.enabled ? config_.waiting.frequency_hz : 0;
  }

  void SayStarted() const {
    const std::string_view directory = config_.files.target();
    Log(LogLevel::kInfo,
        fmt::format("ksym-profiled {}: {}{}{}", KSYM_VERSION, Describe(),
                    directory.empty() ? "" : " to ", directory) +
            fmt::format(", own priority {}", OwnPriorityName(priority_)));
  }

  Status Sample() {
    for (;;) {
      share_.Renew();
      const auto asked = signals_.Wait(
          std::min<std::chrono::nanoseconds>(
              loop_->Pause(), intervals_.UntilNext(NowNs(CLOCK_REALTIME))),
          loop_->bell());
      // The rest is drained by Finish(), within its deadline.
      if (asked.stop) return {};
      KeepAlive();
      const auto due = loop_->Step();
      const bool ends =
          intervals_.Passed(NowNs(CLOCK_REALTIME)) || asked.write_now;
      if (ends) WalkSleepers();
      if (ends || due == CaptureLoop::Due::kDrain) {
        auto drained = Drain(ends ? Edge::kEnd : Edge::kGoOn);
        if (!drained) return drained;
      }
      auto guarded = KeepWithinLimits();
      if (!guarded) return guarded;
      if (asked.reload) {
        auto reloaded = Reload();
        if (!reloaded) return reloaded;
      }
    }
  }

  // Without them the profile lacks what sleeps on: the next one has it.
  void WalkSleepers() {
    // Waits for tables no longer than the last drain: a signal may come.
    const auto walked = capture_->WalkSleepers(kLastTables);
    if (!walked) {
      LogSome(LogLevel::kWarning, "sleepers", walked.error().message());
    }
    ShowWaits(capture_->wait_statistics(), counters_);
  }

  Status Drain(Edge edge) {
    const auto begin = Clock::now();
    // A part ends as its drain begins, which then waits for the sampler.
    const uint64_t end_unix_ns = NowNs(CLOCK_REALTIME);
    auto raw = loop_->Drain();
    if (!raw) return Fail(std::move(raw.error()));
    Give(std::move(*raw), edge, end_unix_ns);
    ++counters_.drains;
    counters_.unwind_table_bytes = capture_->unwind_statistics().rows_bytes;
    ShowRuntimes(capture_->runtime_statistics(), counters_);
    counters_.drain_ns += static_cast<uint64_t>((Clock::now() - begin).count());
    return {};
  }

  // The capture counts on from its start; over months the host's clock and that
  // drift apart, so a part gets its time from when it ended.
  void Give(RawProfile raw, Edge edge, uint64_t end_unix_ns) {
    raw.metadata.start_unix_ns =
        end_unix_ns - std::min(end_unix_ns, raw.metadata.duration_ns);
    CountWaits(raw, counters_);
    cgroups_.Label(raw);
    labels_.Label(raw);
    // Before a profile with them can be written.
    ShowLabels(labels_.statistics(), counters_);
    outputs_->naming().Add(std::move(raw), edge);
  }

  // Less sampling would not help where clients ask much, two queries of theirs
  // at once, or where files of the history become one. Their time is counted a
  // while after it was used: so the rest may go back.
  Guardrail::Use OwnUse() const {
    const uint64_t others =
        counters_.history_query_cpu_ns + counters_.history_compaction_cpu_ns;
    const uint64_t all = OwnCpuNs();
    return {.cpu_ns = all - std::min(all, others),
            .resident_bytes = OwnResidentBytes()};
  }

  // An error only when there is no capture any more.
  Status KeepWithinLimits() {
    if (!guardrail_.IsDue(Clock::now())) return {};
    const auto change = guardrail_.Check(Clock::now(), OwnUse(), wanted_);
    if (!change) return {};
    const auto& [level, has_waits] = change->state;
    ++counters_.guard_changes;
    counters_.guard_level = level;
    ServiceConfig config = Reduce(wanted_, change->state);
    Log(LogLevel::kWarning,
        fmt::format("{}: level {}, sampling at {} Hz{}{}{}", change->why, level,
                    config.frequency_hz, DescribeWaits(config),
                    has_waits ? "" : ", without waits",
                    level < 3 ? "" : ", with less detail"));
    auto fresh = PrepareCapture(config);
    // A failure is no reason to end: sampling goes on as it was, and the next
    // change of the level tries again.
    if (!fresh) {
      Log(LogLevel::kError, fresh.error().message());
      return {};
    }
    return Apply(std::move(config), std::move(*fresh));
  }

  // A service whose names hang is no better than one that is dead.
  void KeepAlive() {
    const auto watchdog = notify_.watchdog();
    if (!watchdog) return;
    const auto now = Clock::now();
    if (now < next_sign_of_life_ ||
        outputs_->naming().BusyFor() > *watchdog / 2)
      return;
    notify_.Send("WATCHDOG=1");
    // Half of the period is what sd_watchdog_enabled(3) recommends: a quarter
    // lets one sign of life be lost.
    next_sign_of_life_ = now + *watchdog / 4;
  }

  // An error only when there is no capture any more.
  Status Reload() {
    notify_.Send(
        // sd_notify(3) wants the time with RELOADING=1: the manager tells this
        // reload from an earlier one by it.
        fmt::format("RELOADING=1\nMONOTONIC_USEC={}",
                    std::chrono::duration_cast<std::chrono::microseconds>(
                        Clock::now().time_since_epoch())
                        .count()));
    const Status status = TryReload();
    // Also after a refusal: the manager waits for the end of the reload, and
    // the service is as ready as before.
    notify_.Send("READY=1\nSTATUS=" + Describe());
    return status;
  }

  Status TryReload() {
    auto wanted = LoadConfig(options_);
    if (!wanted) return RefuseReload(wanted.error());
    ServiceConfig config = Reduce(*wanted, guardrail_.state());
    // All that may fail comes first, so that a refused reload changes nothing.
    // The new capture is loaded beside the old one, which goes on sampling.
    auto outputs = outputs_->Prepare(config);
    if (!outputs) return RefuseReload(outputs.error());
    auto fresh = PrepareCapture(config);
    if (!fresh) return RefuseReload(fresh.error());
    ++counters_.reloads;
    wanted_ = std::move(*wanted);
    outputs_->Apply(config, std::move(*outputs));
    const Status applied = Apply(std::move(config), std::move(*fresh));
    if (applied) Log(LogLevel::kInfo, "reloaded: " + Describe());
    return applied;
  }

  // No error: the service goes on as it was.
  Status RefuseReload(const ksym::Error& error) {
    ++counters_.reloads_refused;
    Log(LogLevel::kError,
        "not reloaded, the configuration stays as it was:\n" + error.message());
    return {};
  }

  // What may fail; null: the capture can stay.
  ksym::Result<std::unique_ptr<Capture>> PrepareCapture(ServiceConfig& config) {
    auto prepared = PrepareDirectory(std::string(config.files.target()));
    if (!prepared) return Fail(std::move(prepared.error()));
    if (!NeedsNewCapture(config)) return nullptr;
    auto capture = StartCapture(config);
    if (!capture) return Fail(std::move(capture.error()));
    return std::make_unique<Capture>(std::move(*capture));
  }

  bool NeedsNewCapture(const ServiceConfig& config) const {
    return config.frequency_hz != config_.frequency_hz ||
           config.stacks != config_.stacks ||
           config.waiting != config_.waiting ||
           config.history.enabled != config_.history.enabled ||
           Labels::Of(config.labels).tid != Labels::Of(config_.labels).tid;
  }

  Status Apply(ServiceConfig config, std::unique_ptr<Capture> fresh) {
    if (fresh) {
      // The old one stops before the new one is enabled, so that no sample is
      // counted twice. Its profile ends here: the rest is sampled otherwise.
      auto rest = capture_->Stop();
      if (!rest) return Fail(std::move(rest.error()));
      Give(std::move(*rest), Edge::kEnd, NowNs(CLOCK_REALTIME));
      // The loop goes before the capture that it looks after.
      loop_.reset();
      capture_ = std::move(fresh);
      auto enabled = EnableCapture(config);
      if (!enabled) return enabled;
      BeginLoop();
    }
    outputs_->Configure(config);
    labels_.Configure(LabelSettings(config));
    // A new clock would miss an end that passed while the capture was loaded.
    if (config.interval_seconds != config_.interval_seconds) {
      intervals_ = IntervalClock(std::chrono::seconds(config.interval_seconds),
                                 NowNs(CLOCK_REALTIME));
    }
    config_ = std::move(config);
    SetLogLevel(ParseLogLevel(config_.log.level));
    ShowRates();
    return {};
  }

  // Whether everything that was sampled is written.
  bool Finish() {
    share_.Renew();
    const auto deadline = Clock::now() + kFinishWithin;
    // Clients first: those that wait for more samples are let go.
    outputs_->CloseHttp();
    auto raw = capture_->Stop(kLastTables);
    if (raw) {
      Give(std::move(*raw), Edge::kEnd, NowNs(CLOCK_REALTIME));
    } else {
      Log(LogLevel::kError, raw.error().message());
    }
    // Files that failed earlier have been logged; the exit status is that of
    // what is written now.
    const uint64_t failed = counters_.files_failed;
    if (!outputs_->Finish(deadline)) {
      Log(LogLevel::kError,
          "the last profile was not written: names or disk are too slow");
      // Their threads cannot be interrupted.
      std::_Exit(kServiceFailure);
    }
    Log(LogLevel::kInfo,
        fmt::format(
            "ended: {} samples taken, {} in profiles, {} lost, {} "
            "dropped; {} files written, {} failed",
            counters_.samples_taken.load(), counters_.samples_emitted.load(),
            counters_.samples_lost.load(),
            counters_.samples_dropped_unnamed.load(),
            counters_.files_written.load(), counters_.files_failed.load()));
    const bool ended_well = raw.has_value() && counters_.files_failed == failed;
    // Unsent profiles are on the disk; that a receiver hangs is no failure.
    const bool is_sent = outputs_->FinishSenders(deadline);
    if (!is_sent || outputs_->naming().left_threads()) {
      std::_Exit(ended_well ? kServiceOk : kServiceFailure);
    }
    return ended_well;
  }

  const ServiceOptions& options_;
  const OwnPriority priority_;
  const std::shared_ptr<GuardedOpener> opener_;
  PriorityShare share_{kSamplingAllowance};
  ServiceConfig wanted_;  // what was asked for
  ServiceConfig config_;  // what the limits leave of it, in force
  ServiceSignals signals_;
  SystemdNotify notify_;
  IntervalClock intervals_;
  ServiceCounters counters_;
  Guardrail guardrail_;  // behind what it is told of
  Clock::time_point next_sign_of_life_;
  CgroupNames cgroups_{counters_};
  ProcessLabels labels_{LabelSettings(config_)};
  std::unique_ptr<ServiceOutputs> outputs_;
  std::unique_ptr<Capture> capture_;   // gives to outputs_
  std::unique_ptr<CaptureLoop> loop_;  // of capture_; null before Start()
};

int Refuse(const ksym::Error& error, int status) {
  Log(LogLevel::kError, error.message());
  return status;
}

}  // namespace

int RunService(const ServiceOptions& options) {
  StartLog(LogLevel::kInfo);
  auto config = LoadConfig(options);
  if (!config) return Refuse(config.error(), kServiceUsage);
  if (options.check_config) return kServiceOk;
  SetLogLevel(ParseLogLevel(config->log.level));
  auto signals = ServiceSignals::Install();
  if (!signals) return Refuse(signals.error(), kServiceFailure);
  auto notify = SystemdNotify::FromEnvironment();
  if (!notify) return Refuse(notify.error(), kServiceFailure);
  // Both before there are threads.
  std::string no_child;
  auto opener = StartGuardedOpener(no_child);
  if (!no_child.empty()) Log(LogLevel::kWarning, no_child);
  const OwnPriority priority =
      ChooseOwnPriority(ParseOwnPriority(config->limits.own_priority)
                            .value_or(OwnPriority::kAuto));
  Service service(options, std::move(*config),
                  {.signals = std::move(*signals),
                   .notify = std::move(*notify),
                   .priority = priority,
                   .opener = std::move(opener)});
  const Status started = service.Start();
  if (!started) return Refuse(started.error(), kServiceFailure);
  return service.Run();
}

}  // namespace profd
