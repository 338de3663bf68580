// SPDX-License-Identifier: Apache-2.0
#include "daemon/capture/bpf_setup.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string>
#include <utility>

#include "daemon/base/now_ns.h"
#include "daemon/capture/sleepers.h"
#include "daemon/unwind/kernel_unwind_maps.h"
#include "ksym/base/unique_fd.h"

namespace profd {
namespace {

using ksym::ErrorCode;
using ksym::Fail;
using ksym::FailErrno;

// A selected process may have many descendants.
constexpr uint32_t kFollowEntries = 65536;
// Threads whose waits are seen; 64 bytes each.
constexpr uint32_t kWaitSlots = 65536;

uint64_t RandomOdd() {
  uint64_t value = 0;
  if (::getrandom(&value, sizeof(value), GRND_NONBLOCK) != sizeof(value)) {
    value = 0x9e3779b97f4a7c15u;  // early in boot: still a good multiplier
  }
  return value | 1;
}

// Lets the program use a map that the user keeps pinned.
ksym::Status UsePinned(bpf_map* map, const std::string& path) {
  const ksym::UniqueFd fd(bpf_obj_get(path.c_str()));
  if (!fd.valid()) return FailErrno(errno, path + ": not a pinned BPF map");
  bpf_map_info info = {};
  uint32_t size = sizeof(info);
  if (bpf_obj_get_info_by_fd(fd.get(), &info, &size) != 0) {
    return FailErrno(errno, path);
  }
  if (info.type != BPF_MAP_TYPE_HASH || info.key_size != sizeof(uint64_t)) {
    return Fail(ErrorCode::kInvalid,
                path + ": not a BPF hash map with keys of 8 bytes");
  }
  // libbpf keeps a descriptor of its own.
  const int error = bpf_map__reuse_fd(map, fd.get());
  if (error != 0) return FailErrno(-error, path);
  return {};
}

// The id by which programs know a cgroup.
ksym::Result<uint64_t> ReadCgroupId(const std::string& path) {
  struct stat status = {};
  if (::stat(path.c_str(), &status) != 0) return FailErrno(errno, path);
  return status.st_ino;
}

// CONFIG_MODULES; without it there are no such tracepoints either.
bool KernelHasModules() { return ::access("/proc/modules", F_OK) == 0; }

void ConfigurePrograms(profile_bpf& skeleton, const BpfConfig& config) {
  auto& programs = skeleton.progs;
  const bool exact = config.store == StackStore::kExact;
  const bool tables = exact && WalksByTables(config.unwind);
  const bool loop = config.table_walk == TableWalk::kLoop;
  const bool cpu = config.cpu_samples;
  bpf_program__set_autoload(programs.sample_exact, cpu && exact && !tables);
  bpf_program__set_autoload(programs.sample_by_loop, cpu && tables && loop);
  bpf_program__set_autoload(programs.sample_by_steps, cpu && tables && !loop);
  bpf_program__set_autoload(programs.sample_stackid, cpu && !exact);
  const bool waits = config.waits.has_value();
  const bool reads = waits && config.waits->kernel.reads_stacks;
  bpf_program__set_autoload(programs.wait_switch, waits);
  bpf_program__set_autoload(programs.wait_threads, reads);
  bpf_program__set_autoload(programs.wait_kernel_threads, waits && !reads);
  bpf_program__set_autoload(programs.wait_resumes_by_loop,
                            waits && tables && loop);
  bpf_program__set_autoload(programs.wait_resumes_by_steps,
                            waits && tables && !loop);
  bpf_program__set_autoload(programs.wait_resumes_by_kernel, waits && !tables);
  const bool wakers = waits && config.waits->wants_wakers;
  bpf_program__set_autoload(programs.waker_by_loop, wakers && tables && loop);
  bpf_program__set_autoload(programs.waker_by_steps, wakers && tables && !loop);
  bpf_program__set_autoload(programs.waker_by_kernel, wakers && !tables);
  const bool all_stacks = config.dump == ThreadDump::kAllStacks;
  bpf_program__set_autoload(programs.dump_threads, all_stacks);
  bpf_program__set_autoload(programs.dump_kernel_stacks,
                            config.dump == ThreadDump::kKernelStacks);
  bpf_program__set_autoload(programs.follow_fork, config.follow_children);
  bpf_program__set_autoload(programs.follow_free, config.follow_children);
  const bool modules = config.kernel_stacks && KernelHasModules();
  bpf_program__set_autoload(programs.module_loaded, modules);
  bpf_program__set_autoload(programs.module_freed, modules);
}

void ConfigureKnobs(profile_bpf& skeleton, const BpfConfig& config) {
  auto& knobs = *skeleton.rodata;
  knobs.want_user = config.user_stacks;
  knobs.want_kernel = config.kernel_stacks;
  knobs.per_thread = config.per_thread;
  knobs.include_idle = config.include_idle;
  knobs.filter_pids = !config.pids.empty();
  knobs.filter_tids = !config.tids.empty();
  knobs.filter_cgroup = !config.cgroup_path.empty();
  knobs.filter_cgroup_ids = !config.cgroup_map_path.empty();
  knobs.filter_mntns = !config.mntns_map_path.empty();
  knobs.want_cgroup = config.want_cgroup;
  knobs.wants_slices = config.tells_slices;
  knobs.max_depth = config.max_stack_depth;
  knobs.kernel_walk_depth = config.kernel_walk_depth;
  knobs.unwind_by_frame_pointer =
      config.unwind == Unwind::kAuto || config.unwind == Unwind::kFramePointers;
  knobs.copy_ring_limit = config.ring_bytes / 2;
  knobs.has_task_pt_regs = config.has_task_pt_regs;
  knobs.walks_runtimes =
      config.store == StackStore::kExact && WalksByTables(config.unwind);
  knobs.hash_multiplier = RandomOdd();
  if (!config.waits) return;
  knobs.takes_waits = 1;
  knobs.wait_period_ns = kNsPerSecond / config.waits->frequency_hz;
  knobs.wait_stacks_at_once = config.waits->stacks_at_once;
  knobs.wait_walks = config.waits->walks == WaitWalks::kIntervals;
  knobs.wait_tells_threads = !knobs.wait_walks;
  knobs.wait_copies_walked = knobs.walks_runtimes;
  knobs.wait_seed = RandomOdd();
  knobs.wait_slot_mask = kWaitSlots - 1;
  knobs.wait_has_prev_state = config.waits->kernel.has_prev_state;
  knobs.wait_by_interrupt = config.waits->kernel.by_interrupt();
  knobs.wants_wakers = config.waits->wants_wakers;
  knobs.waker_count_offset = config.waits->waker_kernel.count_offset;
}

void ConfigureWaitMaps(profile_bpf& skeleton, const BpfConfig& config) {
  auto& maps = skeleton.maps;
  const bool bells = config.waits && config.waits->kernel.by_interrupt();
  const bool walks =
      config.waits && config.waits->walks == WaitWalks::kIntervals;
  const auto cpus =
      static_cast<uint32_t>(std::max(libbpf_num_possible_cpus(), 1));
  // One entry where nothing uses a map: the kernel refuses maps without any.
  for (const auto& [map, entries] :
       {std::pair(maps.wait_slots, kWaitSlots),
        std::pair(maps.wait_cpus, uint32_t{1}),
        std::pair(maps.wait_bells, bells ? cpus : uint32_t{1}),
        std::pair(maps.wait_scratch, uint32_t{1}),
        std::pair(maps.wait_known_threads,
                  walks ? kMaxKnownSleepers : uint32_t{1}),
        std::pair(maps.scratch_places, uint32_t{1}),
        std::pair(maps.waits_0, config.wait_entries),
        std::pair(maps.waits_1, config.wait_entries)}) {
    bpf_map__set_autocreate(map, config.waits.has_value());
    bpf_map__set_max_entries(map, entries);
  }
  if (config.dump != ThreadDump::kNone) {
    bpf_map__set_autocreate(maps.wait_scratch, true);
  }
}

uint32_t ScratchPlaces(const BpfConfig& config) {
  if (!config.waits) return SCRATCH_CPU + 1;
  return config.waits->wants_wakers ? SCRATCH_PLACES : SCRATCH_WAIT + 1;
}

void ConfigureMaps(profile_bpf& skeleton, const BpfConfig& config) {
  auto& maps = skeleton.maps;
  const bool exact = config.store == StackStore::kExact;
  for (bpf_map* counts : {maps.counts_0, maps.counts_1}) {
    bpf_map__set_max_entries(counts, config.count_entries);
  }
  for (bpf_map* seen : {maps.seen_0, maps.seen_1}) {
    bpf_map__set_autocreate(seen, exact);
    bpf_map__set_max_entries(seen, config.stack_entries);
  }
  for (bpf_map* traces : {maps.traces_0, maps.traces_1}) {
    bpf_map__set_autocreate(traces, !exact);
    bpf_map__set_max_entries(traces, config.stack_entries);
    bpf_map__set_value_size(
        traces, static_cast<uint32_t>(config.kernel_walk_depth * 8));
  }
  const uint32_t places = ScratchPlaces(config);
  // Without tables their programs are not loaded, and nothing asks for the
  // maps.
  const bool tables = exact && WalksByTables(config.unwind);
  const UnwindMapSizes sizes = UnwindMapSizes::ForMemory(config.unwind_bytes);
  for (const auto& [map, entries] :
       {std::pair(maps.unwind_processes, sizes.processes),
        std::pair(maps.unwind_mappings, sizes.mappings),
        std::pair(maps.unwind_shards, sizes.shards),
        std::pair(maps.unwind_scratch, places),
        std::pair(maps.copy_scratch, places),
        std::pair(maps.runtime_processes, kRuntimeProcesses),
        std::pair(maps.runtime_v8, kRuntimeProcesses),
        std::pair(maps.runtime_files, kRuntimeFiles),
        std::pair(maps.runtime_places, kRuntimePlaces),
        std::pair(maps.runtime_codes, kRuntimeCodes),
        std::pair(maps.runtime_budgets, kRuntimeBudgets),
        std::pair(maps.runtime_scratch, places),
        std::pair(maps.hotspot_processes, kHotspotProcesses),
        std::pair(maps.hotspot_scratch, places),
        std::pair(maps.code_scratch, places)}) {
    bpf_map__set_autocreate(map, tables);
    bpf_map__set_max_entries(map, entries);
  }
  bpf_map__set_autocreate(maps.ring, exact);
  bpf_map__set_autocreate(maps.scratch, exact);
  bpf_map__set_max_entries(maps.scratch,
                           places * bpf_map__max_entries(maps.scratch));
  bpf_map__set_max_entries(maps.ring, config.ring_bytes);
  const size_t selected = std::max(config.pids.size(), config.tids.size());
  bpf_map__set_max_entries(
      maps.selected_ids,
      static_cast<uint32_t>(std::max<size_t>(
          selected, config.follow_children ? kFollowEntries : 1)));
}

}  // namespace

ksym::Status ConfigureBpf(const BpfConfig& config, profile_bpf& skeleton) {
  // All of it before the object is loaded: the constants are frozen then, which
  // lets the verifier leave out what they switch off, and maps get their size.
  ConfigurePrograms(skeleton, config);
  ConfigureKnobs(skeleton, config);
  ConfigureMaps(skeleton, config);
  ConfigureWaitMaps(skeleton, config);
  if (!config.cgroup_path.empty()) {
    const auto id = ReadCgroupId(config.cgroup_path);
    if (!id) return Fail(id.error());
    skeleton.rodata->filter_cgroup_id = *id;
  }
  for (const auto& [map, path] :
       {std::pair(skeleton.maps.cgroup_ids, &config.cgroup_map_path),
        std::pair(skeleton.maps.mount_namespaces, &config.mntns_map_path)}) {
    if (path->empty()) continue;
    auto used = UsePinned(map, *path);
    if (!used) return used;
  }
  return {};
}

ksym::Status FillFilters(const BpfConfig& config, const profile_bpf& skeleton) {
  const uint8_t selected = 1;
  const int ids = bpf_map__fd(skeleton.maps.selected_ids);
  for (const uint32_t id : config.tids.empty() ? config.pids : config.tids) {
    if (bpf_map_update_elem(ids, &id, &selected, BPF_ANY) != 0) {
      return FailErrno(errno, "selecting processes");
    }
  }
  if (config.cgroup_path.empty()) return {};
  const ksym::UniqueFd cgroup(
      ::open(config.cgroup_path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!cgroup.valid()) return FailErrno(errno, config.cgroup_path);
  const uint32_t slot = 0;
  const int cgroup_fd = cgroup.get();
  if (bpf_map_update_elem(bpf_map__fd(skeleton.maps.selected_cgroup), &slot,
                          &cgroup_fd, BPF_ANY) != 0) {
    return FailErrno(errno, config.cgroup_path +
                                ": not a cgroup v2 directory "
                                "(findmnt -t cgroup2 shows where "
                                "they are)");
  }
  return {};
}

}  // namespace profd
