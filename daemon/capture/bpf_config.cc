// SPDX-License-Identifier: Apache-2.0
#include "daemon/capture/bpf_config.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <string_view>

#include "daemon/capture/wait_programs.h"
#include "daemon/capture/waker_kernel.h"
#include "ksym/base/file.h"
#include "ksym/base/text.h"

namespace profd {
namespace {

using ksym::Fail;

// The frames that the kernel walks at the most, whatever a program asks for.
uint32_t KernelStackDepthLimit() {
  const auto text = ksym::ReadFile("/proc/sys/kernel/perf_event_max_stack", 64);
  // PERF_MAX_STACK_DEPTH, which the kernel begins with.
  if (!text) return 127;
  std::string_view line = *text;
  return ksym::ParseUnsigned<uint32_t>(ksym::TakeField(line, '\n'), 10)
      .value_or(127);
}

// Room for what a quarter of a second can bring at most, if every sample has
// two new stacks of full depth; several times what comes between two polls.
// This is memory of the kernel; RingReader maps little of it.
uint32_t RingBytesFor(SamplingRate rate, size_t cpus, uint32_t depth) {
  constexpr uint64_t kMin = 512 << 10;
  constexpr uint64_t kMax = 16 << 20;
  if (rate.frequency_hz == 0) return 4 << 20;  // any rate may come
  const uint64_t stack_bytes = PROFILE_STACK_RECORD_BYTES(uint64_t{depth});
  const uint64_t samples =
      std::min(rate.frequency_hz, uint64_t{1} << 24) * cpus / 4;
  return static_cast<uint32_t>(
      std::bit_ceil(std::clamp(2 * samples * stack_bytes, kMin, kMax)));
}

// Half of the ring for the copied stacks of a tenth of a second, if all
// processes were new.
uint32_t RingBytesForCopies(SamplingRate rate, size_t cpus) {
  constexpr uint64_t kMax = 8 << 20;
  constexpr uint64_t kCopyBytes = 33 << 10;  // most are smaller
  if (rate.frequency_hz == 0) return kMax;
  const uint64_t samples =
      std::min(rate.frequency_hz, uint64_t{1} << 24) * cpus / 10;
  return static_cast<uint32_t>(
      std::bit_ceil(std::clamp<uint64_t>(2 * samples * kCopyBytes, 1, kMax)));
}

// Room for 20 s, which is a hundred drains: every drain visits every bucket of
// these maps, and that was a tenth of what a capture costs at 99 Hz.
uint32_t EntriesFor(SamplingRate rate, size_t cpus, uint32_t most) {
  constexpr uint64_t kSeconds = 20;
  constexpr uint64_t kMin = 4096;
  if (rate.frequency_hz == 0) return most;  // any rate may come
  const uint64_t samples =
      std::min(rate.frequency_hz, uint64_t{1} << 24) * cpus * kSeconds;
  return static_cast<uint32_t>(std::clamp<uint64_t>(samples, kMin, most));
}

// Where each thread is counted by itself. A CPU takes 1,000 stacks of waits in
// a second, and drains may be seconds apart on a loaded machine.
uint32_t WaitEntriesFor(const BpfConfig& config, size_t cpus) {
  constexpr uint64_t kBase = 8192;
  constexpr uint64_t kOfCpu = 1024;
  const bool copies_sleepers = config.user_stacks &&
                               config.store == StackStore::kExact &&
                               WalksByTables(config.unwind);
  // At the end all threads that sleep are counted at once: the kernel's in
  // these maps, and the others as well where their stacks are not copied.
  if (!copies_sleepers) return kMaxCountEntries;
  return static_cast<uint32_t>(
      std::min<uint64_t>(kBase + kOfCpu * cpus, kMaxCountEntries));
}

std::string_view Name(Unwind unwind) {
  switch (unwind) {
    case Unwind::kAuto:
      return "auto";
    case Unwind::kTables:
      return "dwarf";
    case Unwind::kFramePointers:
      return "fp";
    case Unwind::kNone:
      return "none";
  }
  return "fp";
}

// The architecture that the tables and the walk are made for.
constexpr bool kHasTables =
#if defined(__x86_64__)
    true;
#else
    false;
#endif

void DecideUnwind(CaptureOptions& options, CaptureMetadata& metadata) {
  BpfConfig& config = options.bpf;
  config.unwind = options.unwind;
  // With stack ids it is the kernel that walks (bpf_get_stackid()), and that
  // knows frame pointers only.
  if (WalksByTables(config.unwind) && config.user_stacks &&
      (config.store != StackStore::kExact || !kHasTables)) {
    if (config.unwind == Unwind::kTables) {
      metadata.warnings.emplace_back(
          "--unwind dwarf needs x86-64 and the exact stack store: stacks are "
          "walked along frame pointers");
    }
    config.unwind = Unwind::kFramePointers;
  }
  if (!config.user_stacks && WalksByTables(config.unwind)) {
    config.unwind = Unwind::kFramePointers;
  }
  const bool tables = WalksByTables(config.unwind);
  if (tables) {
    config.table_walk = options.table_walk.value_or(
        KernelHasBpfLoop() ? TableWalk::kLoop : TableWalk::kSteps);
  }
  if (tables || config.waits) {
    // A kernel with bpf_loop(), which is of 5.17, has bpf_task_pt_regs(), of
    // 5.15, as well.
    config.has_task_pt_regs =
        (tables && config.table_walk == TableWalk::kLoop) ||
        (!options.table_walk && KernelHasTaskPtRegs());
  }
  metadata.unwind = Name(config.unwind);
}

ksym::Status DecideWaits(BpfConfig& config) {
  if (!config.waits) return {};
  const auto kernel = FindWaitKernel(config.waits->program);
  if (!kernel) return Fail(kernel.error());
  config.waits->kernel = *kernel;
  if (!config.waits->wants_wakers) return {};
  const auto wakers = FindWakerKernel();
  if (!wakers) return Fail(wakers.error());
  config.waits->waker_kernel = *wakers;
  return {};
}

void DecideDump(BpfConfig& config, CaptureMetadata& metadata) {
  if (config.dump != ThreadDump::kAllStacks || KernelHasThreadMemory()) return;
  config.dump = ThreadDump::kKernelStacks;
  metadata.warnings.emplace_back(
      "this kernel does not let BPF read the memory of threads (it came with "
      "Linux 5.18): there are no user stacks and no holders of locks");
}

void DecideDepths(BpfConfig& config, CaptureMetadata& metadata) {
  const uint32_t limit = KernelStackDepthLimit();
  config.kernel_walk_depth = std::min(config.max_stack_depth, limit);
  // Kernel stacks are nowhere that deep.
  if (config.max_stack_depth > limit && !WalksByTables(config.unwind)) {
    metadata.warnings.push_back(fmt::format(
        "kernel.perf_event_max_stack is {}: deeper stacks are truncated "
        "(sysctl -w kernel.perf_event_max_stack={})",
        limit, config.max_stack_depth));
    config.max_stack_depth = limit;
  }
}

}  // namespace

std::optional<Unwind> ParseUnwind(std::string_view name) {
  for (const Unwind unwind : {Unwind::kAuto, Unwind::kTables,
                              Unwind::kFramePointers, Unwind::kNone}) {
    if (name == Name(unwind)) return unwind;
  }
  return std::nullopt;
}

ksym::Status CompleteConfig(CaptureOptions& options, size_t cpus,
                            CaptureMetadata& metadata) {
  BpfConfig& config = options.bpf;
  auto waits = DecideWaits(config);
  if (!waits) return waits;
  // A kernel without cgroups has no such file, and refuses a program that
  // asks for them.
  config.want_cgroup =
      options.on_sampled && ::access("/proc/self/cgroup", F_OK) == 0;
  config.cache_directory = options.cache_directory;
  config.store = options.store.value_or(
      KernelHasRingBuffer() ? StackStore::kExact : StackStore::kStackId);
  if (config.stack_entries == 0) {
    config.stack_entries =
        config.store == StackStore::kExact
            ? EntriesFor(options.rate, cpus, kMaxExactStackEntries)
            : kStackIdEntries;
  }
  config.wait_entries = config.count_entries;
  if (config.count_entries == 0) {
    config.count_entries = EntriesFor(options.rate, cpus, kMaxCountEntries);
  }
  DecideDump(config, metadata);
  DecideUnwind(options, metadata);
  if (config.wait_entries == 0) {
    config.wait_entries =
        config.per_thread ? WaitEntriesFor(config, cpus) : config.count_entries;
  }
  DecideDepths(config, metadata);
  if (config.ring_bytes == 0) {
    config.ring_bytes =
        RingBytesFor(options.rate, cpus, config.max_stack_depth);
    if (WalksByTables(config.unwind)) {
      config.ring_bytes =
          std::max(config.ring_bytes, RingBytesForCopies(options.rate, cpus));
    }
  }
  metadata.max_stack_depth = config.max_stack_depth;
  metadata.stack_store =
      config.store == StackStore::kExact ? "exact" : "stackid";
  return {};
}

}  // namespace profd
