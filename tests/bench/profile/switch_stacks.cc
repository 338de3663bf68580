// SPDX-License-Identifier: Apache-2.0
// The baseline that scripts/bench measures ksym-profile's waits beside:
//
//   bench_switch_stacks [PID]
//
// Says "Sampling" when its BPF program runs, of that process's threads or of
// all. With SIGINT it prints a line for each thread and pair of stacks, "TID
// NANOSECONDS ADDRESS...", the innermost of the user's frames first, then
// "lost WAITS" and ends. An address of 0 is a stack that is not there.
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "switch_stacks.skel.h"
#include "tests/bench/profile/switch_stacks.h"

namespace {

using Skeleton = switch_stacks_bpf;

void PrintWait(const Skeleton& skeleton, const SwitchWait& wait,
               uint64_t nanoseconds) {
  std::array<uint64_t, SWITCH_DEPTH> frames = {};
  if (wait.user_stack >= 0) {
    ::bpf_map_lookup_elem(::bpf_map__fd(skeleton.maps.stacks), &wait.user_stack,
                          frames.data());
  }
  std::printf("%u %llu", wait.tid,
              static_cast<unsigned long long>(nanoseconds));
  for (size_t i = 0; i < frames.size() && (i == 0 || frames[i] != 0); ++i) {
    std::printf(" %llx", static_cast<unsigned long long>(frames[i]));
  }
  std::putchar('\n');
}

void PrintWaits(const Skeleton& skeleton) {
  const int waits = ::bpf_map__fd(skeleton.maps.waits);
  SwitchWait wait = {};
  const SwitchWait* before = nullptr;
  while (::bpf_map_get_next_key(waits, before, &wait) == 0) {
    uint64_t nanoseconds = 0;
    if (::bpf_map_lookup_elem(waits, &wait, &nanoseconds) == 0) {
      PrintWait(skeleton, wait, nanoseconds);
    }
    before = &wait;
  }
  std::printf("lost %llu\n",
              static_cast<unsigned long long>(skeleton.bss->lost));
}

}  // namespace

int main(int argc, char** argv) {
  // So that the signal ends the waiting below, and nothing else.
  sigset_t end;
  sigemptyset(&end);
  sigaddset(&end, SIGINT);
  ::sigprocmask(SIG_BLOCK, &end, nullptr);
  Skeleton* skeleton = switch_stacks_bpf::open(nullptr);
  if (skeleton == nullptr) return 1;
  if (argc > 1) skeleton->rodata->wanted_process = std::atoi(argv[1]);
  if (Skeleton::load(skeleton) != 0 || Skeleton::attach(skeleton) != 0) {
    return 1;
  }
  std::fputs("Sampling\n", stderr);
  int number = 0;
  ::sigwait(&end, &number);
  Skeleton::detach(skeleton);
  PrintWaits(*skeleton);
  Skeleton::destroy(skeleton);
  return 0;
}
