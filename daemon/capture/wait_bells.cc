// SPDX-License-Identifier: Apache-2.0
#include "daemon/capture/wait_bells.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include <cerrno>
#include <utility>

#include "ksym/base/unique_fd.h"

namespace profd {
namespace {

using ksym::Fail;
using ksym::FailErrno;

// Room for two seconds of what a CPU samples at the most.
constexpr uint32_t kBellBytes = 16 << 10;

ksym::Result<RingReader> MakeBell(int map_fd, uint32_t cpu) {
  // The map of maps keeps the ring, so that no CPU costs a descriptor.
  const ksym::UniqueFd ring(bpf_map_create(BPF_MAP_TYPE_RINGBUF, "wait_bell", 0,
                                           0, kBellBytes, nullptr));
  if (!ring.valid()) return FailErrno(errno, "making a ring buffer");
  const int fd = ring.get();
  if (bpf_map_update_elem(map_fd, &cpu, &fd, BPF_ANY) != 0) {
    return FailErrno(errno, "giving a CPU its ring buffer");
  }
  return RingReader::Open(fd, kBellBytes);
}

}  // namespace

ksym::Result<WaitBells> WaitBells::Make(int map_fd) {
  const int cpus = libbpf_num_possible_cpus();
  if (cpus < 0) return FailErrno(-cpus, "counting the possible CPUs");
  WaitBells bells;
  for (int cpu = 0; cpu < cpus; ++cpu) {
    auto bell = MakeBell(map_fd, static_cast<uint32_t>(cpu));
    if (!bell) return Fail(std::move(bell.error()));
    bells.bells_.push_back(std::move(*bell));
  }
  return bells;
}

void WaitBells::Empty() {
  // Records have no bytes to be read, so that none has to be complete.
  for (RingReader& bell : bells_) bell.Skip();
}

}  // namespace profd
