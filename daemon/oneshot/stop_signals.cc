// SPDX-License-Identifier: Apache-2.0
#include "daemon/oneshot/stop_signals.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>

#include <array>
#include <cerrno>
#include <initializer_list>
#include <thread>
#include <utility>

#include "daemon/base/event_fds.h"
#include "daemon/base/own_priority.h"

namespace profd {
namespace {

// It sleeps but for some microseconds a signal.
constexpr PriorityAllowance kAllowance = {
    .at_once = std::chrono::milliseconds(50),
    .per_second = std::chrono::milliseconds(10)};

sigset_t SetOf(std::initializer_list<int> signals) {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : signals) sigaddset(&set, signal);
  return set;
}

bool IsIgnored(int signal) {
  struct sigaction action = {};
  ::sigaction(signal, nullptr, &action);
  return action.sa_handler == SIG_IGN;
}

// Does not return. A process is gone when each of its threads had a turn to go.
void KillSelf(int signal) {
  RaiseAllThreads();
  const sigset_t set = SetOf({signal});
  ::pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
  ::pthread_kill(::pthread_self(), signal);
}

}  // namespace

class StopSignals::Watcher {
 public:
  struct Files {
    ksym::UniqueFd signals;
    ksym::UniqueFd stop;  // readable after the first signal
    ksym::UniqueFd end;   // of the watching itself
  };
  explicit Watcher(Files files)
      : files_(std::move(files)), thread_([this] { Run(); }) {}
  ~Watcher() {
    ::eventfd_write(files_.end.get(), 1);
    thread_.join();
  }
  Watcher(const Watcher&) = delete;
  Watcher& operator=(const Watcher&) = delete;

  int stop() const { return files_.stop.get(); }

 private:
  void Run() {
    PriorityShare share(kAllowance);
    std::array<pollfd, 2> entries = {
        {{.fd = files_.signals.get(), .events = POLLIN, .revents = 0},
         {.fd = files_.end.get(), .events = POLLIN, .revents = 0}}};
    while (true) {
      if (::poll(entries.data(), entries.size(), -1) < 0) continue;
      share.Renew();
      signalfd_siginfo info = {};
      while (::read(files_.signals.get(), &info, sizeof(info)) ==
             sizeof(info)) {
        Take(static_cast<int>(info.ssi_signo));
      }
      if (entries[1].revents != 0) return;
    }
  }

  // A signal that was ignored when the program began stops it and never kills
  // it.
  void Take(int signal) {
    if (!std::exchange(had_first_, true)) {
      ::eventfd_write(files_.stop.get(), 1);
    } else if (!IsIgnored(signal)) {
      KillSelf(signal);
    }
  }

  Files files_;
  bool had_first_ = false;
  std::thread thread_;  // last: it uses the others
};

StopSignals::StopSignals(std::unique_ptr<Watcher> watcher,
                         ksym::UniqueFd children)
    : watcher_(std::move(watcher)), children_(std::move(children)) {}
StopSignals::StopSignals(StopSignals&&) noexcept = default;
StopSignals::~StopSignals() = default;

ksym::Result<StopSignals> StopSignals::Install() {
  const sigset_t set = SetOf({SIGINT, SIGTERM, SIGCHLD});
  // Descriptors of signals tell of blocked ones only (signalfd(2)).
  if (::sigprocmask(SIG_BLOCK, &set, nullptr) != 0) {
    return ksym::FailErrno(errno, "sigprocmask");
  }
  // A write to a closed pipe shall be an error of that write.
  ::signal(SIGPIPE, SIG_IGN);
  auto children = MakeSignalFd(SetOf({SIGCHLD}));
  if (!children) return ksym::Fail(std::move(children.error()));
  auto signals = MakeSignalFd(SetOf({SIGINT, SIGTERM}));
  if (!signals) return ksym::Fail(std::move(signals.error()));
  auto stop = MakeEventFd();
  if (!stop) return ksym::Fail(std::move(stop.error()));
  auto end = MakeEventFd();
  if (!end) return ksym::Fail(std::move(end.error()));
  return StopSignals(
      std::make_unique<Watcher>(Watcher::Files{.signals = std::move(*signals),
                                               .stop = std::move(*stop),
                                               .end = std::move(*end)}),
      std::move(*children));
}

StopSignals::Event StopSignals::Wait(std::chrono::nanoseconds timeout) {
  const timespec limit = {.tv_sec = timeout.count() / 1'000'000'000,
                          .tv_nsec = timeout.count() % 1'000'000'000};
  std::array<pollfd, 2> entries = {
      {{.fd = watcher_->stop(), .events = POLLIN, .revents = 0},
       {.fd = children_.get(), .events = POLLIN, .revents = 0}}};
  if (::ppoll(entries.data(), entries.size(), &limit, nullptr) <= 0) {
    return Event::kTimeout;
  }
  // The stop first: a command that Ctrl-C has ended as well is no other event.
  eventfd_t stops = 0;
  if (::eventfd_read(watcher_->stop(), &stops) == 0) return Event::kStop;
  Event event = Event::kTimeout;
  signalfd_siginfo info = {};
  while (::read(children_.get(), &info, sizeof(info)) == sizeof(info)) {
    event = Event::kChild;
  }
  return event;
}

}  // namespace profd
