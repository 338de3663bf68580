// SPDX-License-Identifier: Apache-2.0
#include "daemon/oneshot/top_run.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "daemon/base/now_ns.h"
#include "daemon/base/own_priority.h"
#include "daemon/oneshot/live_capture.h"
#include "daemon/oneshot/messages.h"
#include "daemon/oneshot/missing_ids.h"
#include "daemon/oneshot/no_samples.h"
#include "daemon/oneshot/one_shot.h"
#include "daemon/oneshot/top_capture.h"
#include "daemon/oneshot/top_inbox.h"
#include "daemon/oneshot/top_signals.h"
#include "daemon/oneshot/top_worker.h"
#include "daemon/top/key_reader.h"
#include "daemon/top/terminal_screen.h"
#include "daemon/top/top_view.h"

namespace profd {
namespace {

using Clock = std::chrono::steady_clock;
using ksym::Fail;
using ksym::Result;
using ksym::Status;
using std::chrono::milliseconds;

// The thread that answers keys.
constexpr PriorityAllowance kKeysAllowance = {.at_once = milliseconds(200),
                                              .per_second = milliseconds(50)};
// From ESC to the rest of its sequence; slow lines need some of it.
constexpr milliseconds kEscapePatience(50);
// How often a program in the background looks whether it still is.
constexpr milliseconds kBackgroundPeriod(200);
constexpr milliseconds kIdlePeriod(1000);
constexpr milliseconds kLongestPart(1000);
constexpr size_t kBatchRows = 20;
// Sleepers that were not counted for so long are said to be late.
constexpr milliseconds kLateWalk(2500);
// From the end of the screen to that of the program.
constexpr milliseconds kCapturePatience(300);
constexpr milliseconds kPagePatience(2000);

std::string TargetOf(const BpfConfig& bpf) {
  std::string text = "all threads";
  if (!bpf.pids.empty()) {
    text = fmt::format("{} {}", bpf.pids.size() == 1 ? "process" : "processes",
                       fmt::join(bpf.pids, ","));
  } else if (!bpf.tids.empty()) {
    text = fmt::format("{} {}", bpf.tids.size() == 1 ? "thread" : "threads",
                       fmt::join(bpf.tids, ","));
  }
  if (bpf.cgroup_path.empty()) return text;
  return text + " of cgroup " + bpf.cgroup_path;
}

// CPUs that this process has used between two calls.
class OwnUse {
 public:
  double Take() {
    const uint64_t cpu_ns = NowNs(CLOCK_PROCESS_CPUTIME_ID);
    const uint64_t now_ns = NowNs();
    const uint64_t used_ns = cpu_ns - std::exchange(cpu_ns_, cpu_ns);
    const uint64_t passed_ns = now_ns - std::exchange(last_ns_, now_ns);
    return passed_ns == 0
               ? 0
               : static_cast<double>(used_ns) / static_cast<double>(passed_ns);
  }

 private:
  uint64_t cpu_ns_ = 0;
  uint64_t last_ns_ = NowNs();
};

// In the background nothing may be shown and no key is ours. A terminal that is
// not the session's has no background.
bool IsInForeground() {
  const pid_t group = ::tcgetpgrp(STDIN_FILENO);
  return group < 0 || group == ::getpgrp();
}

class TopRun {
 public:
  TopRun(TopOptions options, std::unique_ptr<TerminalScreen> screen)
      : options_(std::move(options)),
        screen_(std::move(screen)),
        state_(options_.state) {}

  Result<int> Run() {
    const auto missing = MissingIds(options_.profile.capture.bpf);
    if (!missing) return Fail(missing.error());
    auto begun = Begin();
    if (!begun) return Fail(std::move(begun.error()));
    if (!missing->empty()) SayLater(MissingText(*missing));
    const Status ended = options_.batch ? PrintTables(*options_.batch) : Show();
    return Finish(ended);
  }

 private:
  Status Begin() {
    auto signals = TopSignals::Install();
    if (!signals) return Fail(std::move(signals.error()));
    signals_ = std::make_unique<TopSignals>(std::move(*signals));
    auto inbox = TopInbox::Make();
    if (!inbox) return Fail(std::move(inbox.error()));
    inbox_ = std::move(*inbox);
    MakeWorker();
    part_ = std::min(options_.interval, kLongestPart);
    auto capture =
        TopCapture::Start(options_.profile, part_,
                          {.part =
                               [this](std::shared_ptr<const Profile> profile) {
                                 Add(std::move(profile));
                               },
                           .failure =
                               [this](ksym::Error error) {
                                 inbox_->Put([&](TopInbox::News& news) {
                                   news.failure = std::move(error);
                                 });
                               }});
    if (!capture) return Fail(std::move(capture.error()));
    capture_ = std::move(*capture);
    facts_ = {.target = TargetOf(options_.profile.capture.bpf),
              .rate = fmt::format("{} Hz",
                                  options_.profile.capture.rate.frequency_hz),
              .no_waits = capture_->no_waits()};
    return {};
  }

  void MakeWorker() {
    worker_ = std::make_unique<TopWorker>(
        state_.window,
        TopWorker::Sinks{.window =
                             [this](std::shared_ptr<const TopWindow> window) {
                               inbox_->Put([&](TopInbox::News& news) {
                                 news.window = std::move(window);
                               });
                             },
                         .page =
                             [this](Result<std::string> page) {
                               inbox_->Put([&](TopInbox::News& news) {
                                 news.page = std::move(page);
                               });
                             }});
  }

  // In the capture's thread. A part may be short, where there was much to take
  // at once. A person does not wait a whole interval for the first table.
  void Add(std::shared_ptr<const Profile> profile) {
    not_shown_ += std::chrono::nanoseconds(profile->metadata.duration_ns);
    const bool is_first = !has_shown_ && !options_.batch;
    const milliseconds wanted = is_first ? part_ : options_.interval;
    const bool is_due = not_shown_ + part_ / 2 >= wanted;
    if (is_due) {
      has_shown_ = true;
      not_shown_ = {};
    }
    worker_->Add(std::move(profile),
                 is_due ? TopWorker::Show::kNow : TopWorker::Show::kLater);
  }

  Status PrintTables(uint64_t count) {
    uint64_t printed = 0;
    while (printed < count) {
      std::array<pollfd, 2> entries = {
          {{.fd = signals_->fd(), .events = POLLIN, .revents = 0},
           {.fd = inbox_->fd(), .events = POLLIN, .revents = 0}}};
      ::poll(entries.data(), entries.size(), -1);
      share_.Renew();
      if (TakeEvents()) return {};
      const TopInbox::News news = inbox_->Take();
      if (news.failure) return Fail(*news.failure);
      if (!news.window) continue;
      Take(news.window);
      const std::string_view space = printed++ == 0 ? "" : "\n";
      const std::string text =
          std::string(space) +
          PrintTop(window_->tables, state_, facts_, kBatchRows);
      if (std::fputs(text.c_str(), stdout) < 0 || std::fflush(stdout) != 0) {
        // Its reader has seen enough.
        if (errno == EPIPE) return {};
        return ksym::FailErrno(errno, "stdout");
      }
    }
    return {};
  }

  Status Show() {
    for (;;) {
      EnterIfForeground();
      Wait();
      share_.Renew();
      if (TakeEvents() || TakeKeys() || screen_->is_broken()) return {};
      TopInbox::News news = inbox_->Take();
      if (news.failure) return Fail(std::move(*news.failure));
      if (news.page) SayPage(*news.page);
      if (news.window && !state_.is_paused) Take(std::move(news.window));
      if (is_entered_) Draw();
    }
  }

  void EnterIfForeground() {
    if (is_entered_ || !IsInForeground()) return;
    screen_->Enter();
    is_entered_ = true;
    Draw();
  }

  // False: the terminal takes no output.
  bool LeaveScreen() {
    is_entered_ = false;
    return !screen_ || screen_->Leave();
  }

  void Wait() {
    std::array<pollfd, 4> entries = {
        {{.fd = signals_->fd(), .events = POLLIN, .revents = 0},
         {.fd = inbox_->fd(), .events = POLLIN, .revents = 0},
         {.fd = is_entered_ ? STDIN_FILENO : -1,
          .events = POLLIN,
          .revents = 0},
         {.fd = is_entered_ && screen_->is_behind() ? screen_->output() : -1,
          .events = POLLOUT,
          .revents = 0}}};
    const milliseconds timeout = keys_.is_waiting() ? kEscapePatience
                                 : is_entered_      ? kIdlePeriod
                                                    : kBackgroundPeriod;
    ::poll(entries.data(), entries.size(), static_cast<int>(timeout.count()));
    has_keys_ = entries[2].revents != 0;
  }

  // Signals; true: one of them ends the program.
  bool TakeEvents() {
    const TopSignals::Came came = signals_->Take();
    if (came.resizes && screen_) screen_->Forget();
    // Whoever stopped us may have changed the terminal.
    if (came.goes_on) is_entered_ = false;
    if (came.stops && !came.ends) StopSelf();
    return came.ends;
  }

  // All threads stop here until SIGCONT, which is an event of its own.
  void StopSelf() {
    LeaveScreen();
    ::kill(::getpid(), SIGSTOP);
  }

  // True: a key ends the program.
  bool TakeKeys() {
    if (!is_entered_) return false;
    std::vector<Key> keys;
    if (has_keys_) {
      std::array<char, 512> bytes = {};
      const ssize_t n = ::read(STDIN_FILENO, bytes.data(), bytes.size());
      // The terminal is gone.
      if (n == 0 || (n < 0 && errno != EINTR && errno != EAGAIN)) return true;
      if (n > 0) keys = keys_.Read({bytes.data(), static_cast<size_t>(n)});
    } else if (keys_.is_waiting()) {
      keys = keys_.GiveUp();
    }
    return std::ranges::any_of(keys,
                               [this](const Key& key) { return Apply(key); });
  }

  bool Apply(const Key& key) {
    facts_.message.clear();
    const TopPlace place = {.tables = tables(),
                            .page = TableRows(screen_->size())};
    const TopState before = state_;
    switch (ApplyKey(key, place, state_)) {
      case TopCommand::kQuit:
        return true;
      case TopCommand::kWrite:
        BeginPage();
        break;
      case TopCommand::kRedraw:
        screen_->Forget();
        break;
      case TopCommand::kNone:
        break;
    }
    if (before.window != state_.window) {
      worker_->SetWindow(state_.window);
      SaySome(fmt::format("window: {} s", state_.window.count()));
    }
    return false;
  }

  void BeginPage() {
    if (!window_ || window_->parts.empty()) {
      return SaySome("there is nothing to write yet");
    }
    const bool began = worker_->WritePage(
        window_->parts, {.state = state_.order.state, .parked = state_.parked});
    if (began) {
      page_says_ =
          fmt::format("{}, {:.1f} s", Name(state_.order.state),
                      static_cast<double>(window_->tables.duration_ns) / 1e9);
    }
    SaySome(began ? "writing a page ..." : "a page is being written");
  }

  void SayPage(const Result<std::string>& page) {
    if (page) return SaySome(fmt::format("wrote ./{}: {}", *page, page_says_));
    SaySome("no page: " + page.error().message());
    facts_.is_warning = true;
  }

  void SaySome(std::string text) {
    facts_.message = std::move(text);
    facts_.is_warning = false;
  }

  void Take(std::shared_ptr<const TopWindow> window) {
    window_ = std::move(window);
    facts_.own_cpus = use_.Take();
    facts_.sleepers_behind =
        capture_->no_waits().empty() && capture_->SinceWalk() > kLateWalk
            ? std::chrono::duration_cast<std::chrono::seconds>(
                  capture_->SinceWalk())
            : std::chrono::seconds(0);
    facts_.no_time = window_->tables.sum.sum() == 0 ? WhyNoTime() : "";
    for (const std::string& warning : window_->warnings) SayLater(warning);
  }

  // For a whole machine that is what the second line says.
  std::string WhyNoTime() const {
    const BpfConfig& bpf = options_.profile.capture.bpf;
    const bool is_chosen =
        !bpf.pids.empty() || !bpf.tids.empty() || !bpf.cgroup_path.empty();
    return is_chosen ? WhyNoSamples(options_.profile) : std::string();
  }

  // When the terminal is as it was.
  void SayLater(const std::string& warning) {
    if (std::ranges::find(warnings_, warning) != warnings_.end()) return;
    warnings_.push_back(warning);
    SaySome("warning: " + warning);
    facts_.is_warning = true;
  }

  const TopTables& tables() const {
    static const TopTables kNone;
    return window_ ? window_->tables : kNone;
  }

  void Draw() {
    screen_->Show(DrawTop(tables(), state_, facts_, screen_->size()));
  }

  void SayWarnings() const {
    for (const std::string& warning : warnings_) {
      PrintMessage("warning: " + warning);
    }
  }

  Result<int> Finish(const Status& ended) {
    // Else a message would wait for ever, and signals are blocked here.
    const bool can_say = LeaveScreen() || ::isatty(STDERR_FILENO) == 0;
    if (can_say) SayWarnings();
    const bool has_captured = capture_->Stop(Clock::now() + kCapturePatience);
    const bool has_written = worker_->Stop(Clock::now() + kPagePatience);
    const int status = ended     ? kExitOk
                       : can_say ? ReportFailure(ended.error())
                                 : kExitFailure;
    if (!has_captured || !has_written) {
      std::fflush(nullptr);
      std::_Exit(status);
    }
    return status;
  }

  TopOptions options_;
  PriorityShare share_{kKeysAllowance};
  std::unique_ptr<TopSignals> signals_;
  std::unique_ptr<TerminalScreen> screen_;  // null: tables are printed
  bool is_entered_ = false;
  KeyReader keys_;
  bool has_keys_ = false;
  TopState state_;
  TopFacts facts_;
  std::string page_says_;
  OwnUse use_;
  std::shared_ptr<const TopWindow> window_;  // that is shown; null: none yet
  std::vector<std::string> warnings_;
  std::unique_ptr<TopInbox> inbox_;
  std::unique_ptr<TopWorker> worker_;  // uses the inbox
  milliseconds part_ = kLongestPart;
  // Sampled since the last table; the capture's thread makes it.
  std::chrono::nanoseconds not_shown_{0};
  bool has_shown_ = false;
  std::unique_ptr<TopCapture> capture_;  // uses the worker
};

}  // namespace

int RunTop(TopOptions options) {
  std::unique_ptr<TerminalScreen> screen;
  if (!options.batch) {
    auto opened = TerminalScreen::Open();
    if (!opened) return ReportFailure(opened.error());
    screen = std::make_unique<TerminalScreen>(std::move(*opened));
  }
  StartOpener(options.profile);
  // Before there are threads.
  options.profile.own_priority =
      ChooseOwnPriority(options.profile.own_priority);
  const Result<int> status =
      TopRun(std::move(options), std::move(screen)).Run();
  return status ? *status : ReportFailure(status.error());
}

}  // namespace profd
