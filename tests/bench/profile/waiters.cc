// SPDX-License-Identifier: Apache-2.0
// Threads that scripts/bench measures the sampling of waits with:
//
//   bench_waiters asleep THREADS            they sleep until this is killed
//   bench_waiters runnable THREADS          they spin until this is killed
//   bench_waiters ring THREADS SECONDS      they pass a token on
//   bench_waiters beat SECONDS [PRIORITY]   one wakes up each millisecond
//
// "ready" says that all threads are there. ring and beat begin when they can
// read a line then. ring prints how many times the token was passed and how
// many nanoseconds of CPU time each took; beat prints how late it woke up, in
// nanoseconds: the median, the 99.9th percentile, the maximum, and how many
// times of how many it was more than 1 ms. PRIORITY is a real-time one.
#include <pthread.h>
#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;

constexpr size_t kStackBytes = 64 * 1024;

void Start(void* (*run)(void*), void* argument) {
  pthread_attr_t attributes;
  ::pthread_attr_init(&attributes);
  ::pthread_attr_setstacksize(&attributes, kStackBytes);
  pthread_t thread;
  if (::pthread_create(&thread, &attributes, run, argument) != 0) {
    std::perror("pthread_create");
    std::_Exit(1);
  }
  ::pthread_attr_destroy(&attributes);
}

void Ready() {
  std::puts("ready");
  std::fflush(stdout);
}

void ReadyAndWait() {
  Ready();
  if (std::getchar() == EOF) std::_Exit(1);
}

void* Sleep(void* unused) {
  for (;;) ::pause();
  return unused;
}

void* Spin(void* unused) {
  volatile bool go_on = true;
  while (go_on) {
  }
  return unused;
}

[[noreturn]] void RunAll(int threads, void* (*run)(void*)) {
  for (int i = 0; i < threads; ++i) Start(run, nullptr);
  Ready();
  for (;;) ::pause();
}

struct Member {
  int from = -1;
  int to = -1;
};

void* PassOn(void* argument) {
  const auto* member = static_cast<const Member*>(argument);
  char byte = 0;
  while (::read(member->from, &byte, 1) == 1 &&
         ::write(member->to, &byte, 1) == 1) {
  }
  return nullptr;
}

double CpuNs() {
  rusage usage = {};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto ns = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) * 1e9 +
           static_cast<double>(time.tv_usec) * 1e3;
  };
  return ns(usage.ru_utime) + ns(usage.ru_stime);
}

// As many open files as may be: each member of a ring has two.
void RaiseFileLimit() {
  rlimit limit = {};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

// This thread is the last member, which counts.
int Ring(int threads, double seconds) {
  RaiseFileLimit();
  std::vector<Member> members(threads);
  for (int i = 0; i < threads; ++i) {
    std::array<int, 2> ends = {};
    if (::pipe(ends.data()) != 0) {
      std::perror("pipe");
      return 1;
    }
    members[i].to = ends[1];
    members[(i + 1) % threads].from = ends[0];
  }
  for (int i = 0; i + 1 < threads; ++i) Start(PassOn, &members[i]);
  ReadyAndWait();
  const double before = CpuNs();
  const auto end = Clock::now() + std::chrono::duration<double>(seconds);
  uint64_t passed = 0;
  char byte = 0;
  while (Clock::now() < end) {
    if (::write(members.back().to, &byte, 1) != 1) return 1;
    if (::read(members.back().from, &byte, 1) != 1) return 1;
    passed += threads;
  }
  std::printf("%llu %.1f\n", static_cast<unsigned long long>(passed),
              (CpuNs() - before) / static_cast<double>(passed));
  std::fflush(stdout);
  std::_Exit(0);
}

int Beat(double seconds, int priority) {
  sched_param parameters = {};
  parameters.sched_priority = priority;
  if (priority != 0 && ::sched_setscheduler(0, SCHED_FIFO, &parameters) != 0) {
    return 1;
  }
  constexpr int64_t kPeriodNs = 1'000'000;
  std::vector<int64_t> late;
  const auto beats = static_cast<size_t>(seconds * 1e9 / kPeriodNs);
  late.reserve(beats);
  ReadyAndWait();
  timespec due = {};
  ::clock_gettime(CLOCK_MONOTONIC, &due);
  const auto ns = [](const timespec& time) {
    return time.tv_sec * 1'000'000'000 + time.tv_nsec;
  };
  while (late.size() < beats) {
    const int64_t next = ns(due) + kPeriodNs;
    due = {.tv_sec = next / 1'000'000'000, .tv_nsec = next % 1'000'000'000};
    ::clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &due, nullptr);
    timespec now = {};
    ::clock_gettime(CLOCK_MONOTONIC, &now);
    late.push_back(ns(now) - next);
    // One that missed many beats goes on from now.
    if (late.back() > kPeriodNs) due = now;
  }
  std::sort(late.begin(), late.end());
  const auto over =
      late.end() - std::upper_bound(late.begin(), late.end(), 1'000'000);
  std::printf("%lld %lld %lld %lld %zu\n",
              static_cast<long long>(late[late.size() / 2]),
              static_cast<long long>(late[late.size() * 999 / 1000]),
              static_cast<long long>(late.back()), static_cast<long long>(over),
              late.size());
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  const std::string_view mode = argv[1];
  if (mode == "asleep") RunAll(std::atoi(argv[2]), Sleep);
  if (mode == "runnable") RunAll(std::atoi(argv[2]), Spin);
  if (mode == "ring" && argc == 4) {
    return Ring(std::atoi(argv[2]), std::atof(argv[3]));
  }
  if (mode == "beat") {
    return Beat(std::atof(argv[2]), argc > 3 ? std::atoi(argv[3]) : 0);
  }
  return 2;
}
