// SPDX-License-Identifier: Apache-2.0
// What scripts/bench measures the cost of a switch of threads with:
//
//   bench_switches CPU SECONDS
//
// Two processes on one CPU wake each other through pipes. Prints how many
// switches there were and how many nanoseconds of CPU time each took.
#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

namespace {

using Clock = std::chrono::steady_clock;

bool PinTo(int cpu) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(cpu, &set);
  return ::sched_setaffinity(0, sizeof(set), &set) == 0;
}

uint64_t CpuNs(int whose) {
  rusage usage = {};
  ::getrusage(whose, &usage);
  const auto ns = [](const timeval& time) {
    return static_cast<uint64_t>(time.tv_sec) * 1'000'000'000 +
           static_cast<uint64_t>(time.tv_usec) * 1000;
  };
  return ns(usage.ru_utime) + ns(usage.ru_stime);
}

// Gives back each byte until there are no more.
[[noreturn]] void Echo(int from, int to) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  char byte = 0;
  while (::read(from, &byte, 1) == 1 && ::write(to, &byte, 1) == 1) {
  }
  std::_Exit(0);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3 || !PinTo(std::atoi(argv[1]))) return 2;
  std::array<int, 2> there = {};
  std::array<int, 2> back = {};
  if (::pipe(there.data()) != 0 || ::pipe(back.data()) != 0) return 1;
  const pid_t child = ::fork();
  if (child < 0) return 1;
  if (child == 0) {
    ::close(there[1]);
    Echo(there[0], back[1]);
  }
  const auto end =
      Clock::now() + std::chrono::duration<double>(std::atof(argv[2]));
  uint64_t rounds = 0;
  char byte = 0;
  while (Clock::now() < end) {
    for (int i = 0; i < 100; ++i, ++rounds) {
      if (::write(there[1], &byte, 1) != 1) return 1;
      if (::read(back[0], &byte, 1) != 1) return 1;
    }
  }
  ::close(there[1]);
  ::waitpid(child, nullptr, 0);
  const uint64_t switches = 2 * rounds;
  const uint64_t cpu = CpuNs(RUSAGE_SELF) + CpuNs(RUSAGE_CHILDREN);
  std::printf("%llu %.1f\n", static_cast<unsigned long long>(switches),
              static_cast<double>(cpu) / static_cast<double>(switches));
  return 0;
}
