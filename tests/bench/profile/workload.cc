// SPDX-License-Identifier: Apache-2.0
// What scripts/bench profiles: programs with a known shape of stack.
//
//   bench_workload CPU depth N   ~N user frames, all time in the innermost
//   bench_workload CPU paths N   random walks down N call paths of one depth
//   bench_workload CPU urandom   reads /dev/urandom: time in the kernel
//
// Pins itself to CPU and runs until it is killed, at the latest when the
// program that started it ends. Compiled with frame pointers.
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>

namespace {

// Frames around the recursion: _start, two of libc, main and the spinning.
constexpr unsigned kOuterFrames = 5;
constexpr unsigned kPathLevels = 20;

// About ten microseconds. On x86 one instruction, so that a stack is the same
// stack at each sample of it.
[[gnu::noinline]] void Spin() {
  uint64_t left = 10'000;
#if defined(__x86_64__)
  asm volatile("1: loop 1b" : "+c"(left));
#else
  while (left > 0) {
    asm volatile("" : "+r"(left));
    --left;
  }
#endif
}

using Step = void (*)(uint64_t path, unsigned levels);
extern const std::array<volatile Step, 2> kSteps;

// An indirect call that is not the last thing done: neither inlined nor
// turned into a jump, so each level is a frame.
[[gnu::always_inline]] inline void Descend(uint64_t path, unsigned levels) {
  if (levels == 0) {
    Spin();
  } else {
    const Step next = kSteps[path & 1];
    next(path >> 1, levels - 1);
  }
  asm volatile("" ::: "memory");
}

[[gnu::noinline]] void Left(uint64_t path, unsigned levels) {
  Descend(path, levels);
}

[[gnu::noinline]] void Right(uint64_t path, unsigned levels) {
  asm volatile("nop");  // not the same code as Left, which could be merged
  Descend(path, levels);
}

const std::array<volatile Step, 2> kSteps = {&Left, &Right};

// xorshift64*; the same walks in each run.
uint64_t NextRandom(uint64_t& state) {
  state ^= state >> 12;
  state ^= state << 25;
  state ^= state >> 27;
  return state * 0x2545f4914f6cdd1dULL;
}

[[noreturn]] void WalkDeep(unsigned frames) {
  const unsigned levels = frames > kOuterFrames ? frames - kOuterFrames : 0;
  for (;;) Descend(0, levels);
}

[[noreturn]] void WalkPaths(uint64_t paths) {
  uint64_t state = 0x9e3779b97f4a7c15ULL;
  for (;;) Descend((NextRandom(state) >> 32) % paths, kPathLevels);
}

int ReadUrandom() {
  static std::array<char, 65536> buffer;
  const int fd = ::open("/dev/urandom", O_RDONLY | O_CLOEXEC);
  while (::read(fd, buffer.data(), buffer.size()) > 0) {
  }
  std::perror("bench_workload: /dev/urandom");
  return 1;
}

bool PinTo(int cpu) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(static_cast<size_t>(cpu), &set);
  return ::sched_setaffinity(0, sizeof(set), &set) == 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fputs("usage: bench_workload CPU depth|paths|urandom [N]\n", stderr);
    return 2;
  }
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (!PinTo(std::atoi(argv[1]))) {
    std::perror("bench_workload: pinning to the CPU");
    return 1;
  }
  const std::string_view mode = argv[2];
  const uint64_t n = argc > 3 ? std::strtoull(argv[3], nullptr, 10) : 0;
  if (mode == "depth") WalkDeep(static_cast<unsigned>(n));
  if (mode == "paths" && n > 0) WalkPaths(n);
  if (mode == "urandom") return ReadUrandom();
  std::fputs("bench_workload: no such mode\n", stderr);
  return 2;
}
