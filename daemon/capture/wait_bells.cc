// SPDX-License-Identifier: Apache-2.0
#include "daemon/capture/wait_bells.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

namespace profd {
namespace {

using ksym::Fail;
using ksym::FailErrno;

// Room for two seconds of what a CPU samples at the most.
constexpr uint32_t kBellBytes = 16 << 10;

size_t PageSize() { return static_cast<size_t>(::sysconf(_SC_PAGESIZE)); }

ksym::Result<uint64_t*> MapPage(int map_fd, size_t page, int access) {
  void* memory = ::mmap(nullptr, PageSize(), access, MAP_SHARED, map_fd,
                        static_cast<off_t>(page * PageSize()));
  if (memory == MAP_FAILED) return FailErrno(errno, "mapping a ring buffer");
  return static_cast<uint64_t*>(memory);
}

}  // namespace

WaitBells::Page::Page(Page&& other) noexcept
    : memory_(std::exchange(other.memory_, nullptr)), bytes_(other.bytes_) {}

WaitBells::Page& WaitBells::Page::operator=(Page&& other) noexcept {
  std::swap(memory_, other.memory_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

WaitBells::Page::~Page() {
  if (memory_ != nullptr) ::munmap(memory_, bytes_);
}

ksym::Result<WaitBells::Bell> WaitBells::MakeBell(int map_fd, uint32_t cpu) {
  // The map of maps keeps it.
  const ksym::UniqueFd ring(bpf_map_create(BPF_MAP_TYPE_RINGBUF, "wait_bell", 0,
                                           0, kBellBytes, nullptr));
  if (!ring.valid()) return FailErrno(errno, "making a ring buffer");
  const int fd = ring.get();
  if (bpf_map_update_elem(map_fd, &cpu, &fd, BPF_ANY) != 0) {
    return FailErrno(errno, "giving a CPU its ring buffer");
  }
  // The kernel's layout of a ring: a page each of these two, then the records.
  const auto consumed = MapPage(fd, 0, PROT_READ | PROT_WRITE);
  if (!consumed) return Fail(consumed.error());
  Bell bell;
  bell.consumed = Page(*consumed, PageSize());
  const auto produced = MapPage(fd, 1, PROT_READ);
  if (!produced) return Fail(produced.error());
  bell.produced = Page(*produced, PageSize());
  return bell;
}

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
  for (const Bell& bell : bells_) {
    __atomic_store_n(bell.consumed.get(),
                     __atomic_load_n(bell.produced.get(), __ATOMIC_ACQUIRE),
                     __ATOMIC_RELEASE);
  }
}

}  // namespace profd
