// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "bpf/profile_abi.h"
#include "daemon/capture/runtime_records.h"
#include "daemon/capture/sampled_count.h"
#include "daemon/capture/wait_programs.h"
#include "daemon/capture/waker_kernel.h"
#include "daemon/unwind/kernel_unwind_maps.h"
#include "ksym/base/result.h"

namespace profd {

enum class StackStore : uint8_t {
  kExact,    // 64-bit ids, frames through the ring buffer; loses nothing
  kStackId,  // BPF_MAP_TYPE_STACK_TRACE; loses stacks to collisions
};

// How user stacks are walked.
enum class Unwind : uint8_t {
  kAuto,           // by unwind tables; by frame pointers where there is none
  kTables,         // by unwind tables only
  kFramePointers,  // by frame pointers only
  kNone,           // not at all: the innermost frame
};
constexpr bool WalksByTables(Unwind unwind) {
  return unwind == Unwind::kAuto || unwind == Unwind::kTables;
}
// Which program walks by tables; both find the same frames.
enum class TableWalk : uint8_t {
  kLoop,   // bpf_loop(), since 5.17
  kSteps,  // a bounded loop
};

// Frames of one stack, at the most.
inline constexpr uint32_t kMaxStackDepth = PROFILE_MAX_DEPTH;
inline constexpr uint32_t kMaxCountEntries = 40960;
inline constexpr uint32_t kMaxExactStackEntries = 32768;
inline constexpr uint32_t kStackIdEntries = 16384;

enum class Verbosity : uint8_t { kNormal, kVerbose };

// When a capture walks over the threads that wait, beside the samples that are
// taken when they go on.
enum class WaitWalks : uint8_t {
  kAtEnds,     // when it begins and ends: all that each thread did, as well
  kIntervals,  // whenever Capture::WalkSleepers() is called: who sleeps on
};

// How threads that wait are sampled.
struct WaitConfig {
  // Samples of a second of each thread's time, from 1 to 1e9.
  uint64_t frequency_hz = 0;
  WaitWalks walks = WaitWalks::kAtEnds;
  // Stacks that a CPU takes in a tenth of a second before chance decides.
  uint32_t stacks_at_once = 100;
  std::optional<WaitProgram> program = std::nullopt;  // empty: the best one
  WaitKernel kernel = {};  // decided by Capture::Start()
  // Samples say who woke the threads, too.
  bool wants_wakers = false;
  WakerKernel waker_kernel = {};  // decided by Capture::Start()
};

// How all threads are dumped when sampling ends.
enum class ThreadDump : uint8_t {
  kNone,
  kKernelStacks,  // where programs cannot read another thread's memory
  kAllStacks,     // Linux 5.18
};

// How a BPF object is made; fixed before it is loaded.
struct BpfConfig {
  StackStore store = StackStore::kExact;
  Unwind unwind = Unwind::kFramePointers;  // the stackid store knows no other
  TableWalk table_walk = TableWalk::kLoop;
  // The kernel's bpf_task_pt_regs(), 5.15. Asked for by tables and waits only.
  bool has_task_pt_regs = false;
  uint64_t unwind_bytes = uint64_t{256} << 20;  // of tables, in the kernel
  uint32_t max_stack_depth = 127;
  uint32_t kernel_walk_depth = 127;  // not above kernel.perf_event_max_stack
  // Distinct keys per set, of the CPU's samples and of waits, and distinct
  // stacks; 0: as CompleteConfig() says.
  uint32_t count_entries = 0;
  uint32_t wait_entries = 0;
  uint32_t stack_entries = 0;
  // Power of two and multiple of the page size; 0: RingBytesFor(the rate).
  uint32_t ring_bytes = 0;
  bool user_stacks = true;
  bool kernel_stacks = true;
  bool per_thread = false;
  bool want_cgroup = false;  // SampleHint::cgroup; exact store
  bool include_idle = false;
  bool tells_slices = false;            // of the CPU's samples; see profile_key
  bool cpu_samples = true;              // of what runs
  std::optional<WaitConfig> waits;      // of what waits; exact store
  ThreadDump dump = ThreadDump::kNone;  // without waits; exact store
  // Sample only these thread groups, or threads; empty: all.
  std::vector<uint32_t> pids;
  std::vector<uint32_t> tids;
  bool follow_children = false;  // of `pids`, from now on
  std::string cgroup_path;       // a cgroup v2 directory; empty: all
  std::string cgroup_map_path;   // pinned hash of cgroup ids, as bcc's
  std::string mntns_map_path;    // pinned hash of mount namespaces, as bcc's
  // Where the small BTF of the kernel is kept (btf_cache.h); empty: nowhere.
  std::string cache_directory;
  Verbosity verbosity = Verbosity::kNormal;
};

// The programs and maps that sample waits, of a loaded object that was asked
// for them. The pointers are into memory that is shared with the programs.
struct WaitParts {
  int switch_fd = -1;   // program of the tracepoint sched_switch
  int resumes_fd = -1;  // of what comes after it
  int threads_fd = -1;  // iterator over threads
  int waking_fd = -1;   // program of sched_waking; -1: none
  int cpus_fd = -1;     // map of wait_cpu
  int bells_fd = -1;    // map of rings
  std::array<int, PROFILE_SETS> waits_fds = {-1, -1};
  __u32* own_tid = nullptr;
  __u64* clock_offset = nullptr;
  __u64* from = nullptr;
  __u64* until = nullptr;
  __u64* walk_until = nullptr;
  __u32* stacks_left = nullptr;
  __u64* put_off = nullptr;
  __u64* began_by = nullptr;
};

// The loaded BPF object: programs and maps of bpf/profile.bpf.c. Owns them;
// not thread-safe.
class BpfObject {
 public:
  static ksym::Result<BpfObject> Load(const BpfConfig& config);
  BpfObject(BpfObject&&) noexcept;
  BpfObject& operator=(BpfObject&&) noexcept;
  ~BpfObject();

  // Whether ModulesChanged() knows when a module comes or goes.
  bool watches_modules() const;
  // True when one did since the last call.
  bool ModulesChanged();
  // Whether libbpf was content with MinimalBtf().
  bool used_minimal_btf() const;
  // The program to attach to a perf event, where the CPU is sampled.
  int program_fd() const;
  WaitParts wait_parts() const;
  // The map of threads whose stacks are known; -1: waits are not sampled.
  int known_threads_fd() const;
  // The program that dumps threads, an iterator, and whether it reads their
  // user stacks.
  int dump_fd() const;
  bool dumps_user_stacks() const;
  // Where it finds tables; -1 unless it walks by them.
  UnwindMapFds unwind_maps() const;
  RuntimeMapFds runtime_maps() const;
  // Set to 1 when there is something in those maps; lives as long as this.
  uint32_t* runtime_known() const;
  StackStore store() const { return store_; }

  // Makes samples from now on go to the other set; returns the one that was
  // written. A program that is running may still write to it: see
  // WaitForRunningPrograms().
  uint32_t Flip();

  // Where slices begin, less than one after those of CLOCK_MONOTONIC. Before
  // the first sample.
  void SetSlicePhase(uint64_t phase_ns);
  bool tells_slices() const;

  // Calls the function with each record that is in the ring, in order, and
  // frees the space; see RingReader::Consume(). The record is valid during the
  // call only.
  using RecordHandler =
      std::function<void(const profile_record& record, size_t bytes)>;
  void ConsumeRecords(const RecordHandler& handler);
  // The ring's map; -1: the stackid store has none.
  int ring_fd() const;
  // How much came since the load that should be read soon: records of what may
  // be gone later, and all where the ring is a quarter full. Only grows.
  uint64_t news() const;
  // Wakes up who waits for the ring at the next news, once. What news() says
  // afterwards came before.
  void WantBell();

  // How much of a stack is copied from now on; see PROFILE_COPY_CHUNK.
  void SetCopyChunks(uint32_t chunks);
  // So many more bytes of stacks may be copied until the next call; each copy
  // counts for 16 KiB at least.
  void AllowCopies(uint64_t bytes);

  // Empties a set that nobody writes to any more, in batches.
  ksym::Result<std::vector<SampledCount>> TakeCounts(uint32_t set);
  // Exact store: forgets which stacks were sent. StackId store: forgets all.
  ksym::Status ClearStacks(uint32_t set);
  // StackId store: the frames of a bucket, leaf first; empty when there are
  // none.
  std::vector<uint64_t> ReadStackTrace(uint32_t set, uint32_t bucket) const;

  // Sums over the CPUs of everything since load; never reset.
  ksym::Result<profile_stats> ReadStats(uint32_t set) const;

 private:
  class Impl;
  BpfObject(std::unique_ptr<Impl> impl, StackStore store);

  std::unique_ptr<Impl> impl_;
  StackStore store_;
};

// True when the kernel has BPF ring buffers (5.8).
bool KernelHasRingBuffer();
// Whether perf event programs may call bpf_loop() or bpf_task_pt_regs().
bool KernelHasBpfLoop();
bool KernelHasTaskPtRegs();
// Whether programs that walk over threads may read their memory (5.18).
bool KernelHasThreadMemory();

}  // namespace profd
