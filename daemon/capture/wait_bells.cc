// SPDX-License-Identifier: Apache-2.0
#include "daemon/capture/wait_bells.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "daemon/unwind/inner_maps.h"
#include "ksym/base/unique_fd.h"

namespace profd {
namespace {

using ksym::Fail;
using ksym::FailErrno;

// Room for two seconds of what a CPU samples at the most.
constexpr uint32_t kBellBytes = 16 << 10;

// So many descriptors are open at a time: the map of maps keeps the rings.
constexpr uint32_t kBellsAtOnce = 128;

ksym::Result<std::vector<ksym::UniqueFd>> CreateBells(uint32_t count) {
  std::vector<ksym::UniqueFd> bells;
  bells.reserve(count);
  for (uint32_t i = 0; i < count; ++i) {
    bells.emplace_back(bpf_map_create(BPF_MAP_TYPE_RINGBUF, "wait_bell", 0, 0,
                                      kBellBytes, nullptr));
    if (!bells.back().valid()) return FailErrno(errno, "making a ring buffer");
  }
  return bells;
}

}  // namespace

ksym::Result<WaitBells> WaitBells::Make(int map_fd) {
  const int possible = libbpf_num_possible_cpus();
  if (possible < 0) return FailErrno(-possible, "counting the possible CPUs");
  const auto cpus = static_cast<uint32_t>(possible);
  WaitBells bells;
  bells.bells_.reserve(cpus);
  for (uint32_t first = 0; first < cpus; first += kBellsAtOnce) {
    const auto made = CreateBells(std::min(kBellsAtOnce, cpus - first));
    if (!made) return Fail(made.error());
    if (AddInnerMaps(map_fd, first, *made) < made->size()) {
      return FailErrno(errno, "giving a CPU its ring buffer");
    }
    for (const ksym::UniqueFd& bell : *made) {
      auto reader = RingReader::Open(bell.get(), kBellBytes);
      if (!reader) return Fail(std::move(reader.error()));
      bells.bells_.push_back(std::move(*reader));
    }
  }
  return bells;
}

void WaitBells::Empty() {
  // Records have no bytes to be read, so that none has to be complete.
  for (RingReader& bell : bells_) bell.Skip();
}

}  // namespace profd
