// SPDX-License-Identifier: Apache-2.0
#include "daemon/capture/bpf_object.h"

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <iterator>
#include <optional>
#include <span>
#include <utility>

#include "daemon/capture/add_stats.h"
#include "daemon/capture/batch.h"
#include "daemon/capture/bpf_setup.h"
#include "daemon/capture/btf_cache.h"
#include "daemon/capture/kernel_btf_id.h"
#include "daemon/capture/program_handler.h"
#include "daemon/capture/ring_reader.h"
#include "daemon/perf/privileges.h"
#include "ksym/base/file.h"
#include "ksym/base/unique_fd.h"
#include "profile.skel.h"

namespace profd {
namespace {

using ksym::Fail;
using ksym::FailErrno;

struct SkeletonDeleter {
  void operator()(profile_bpf* skeleton) const {
    profile_bpf__destroy(skeleton);
  }
};
struct LinkDeleter {
  void operator()(bpf_link* link) const { bpf_link__destroy(link); }
};
using LinkPtr = std::unique_ptr<bpf_link, LinkDeleter>;

// libbpf explains a failure only through its print callback. The first
// warning is kept, because it names the cause; the later ones follow from it.
class LibbpfMessages {
 public:
  explicit LibbpfMessages(Verbosity verbosity) {
    first_warning_.clear();
    verbose_ = verbosity == Verbosity::kVerbose;
    previous_ = libbpf_set_print(&Print);
  }
  ~LibbpfMessages() { libbpf_set_print(previous_); }
  LibbpfMessages(const LibbpfMessages&) = delete;
  LibbpfMessages& operator=(const LibbpfMessages&) = delete;

  static const std::string& first_warning() { return first_warning_; }

 private:
  __attribute__((format(printf, 2, 0))) static int Print(
      libbpf_print_level level, const char* format, va_list arguments) {
    if (verbose_) return std::vfprintf(stderr, format, arguments);
    if (level != LIBBPF_WARN || !first_warning_.empty()) return 0;
    std::array<char, 512> text = {};
    const int length =
        std::vsnprintf(text.data(), text.size(), format, arguments);
    first_warning_.assign(text.data());
    while (first_warning_.ends_with('\n')) first_warning_.pop_back();
    return length;
  }

  static inline std::string first_warning_;
  static inline bool verbose_ = false;
  libbpf_print_fn_t previous_;
};

std::unexpected<ksym::Error> LoadFailure(int error) {
  std::string what = "loading the BPF programs";
  const std::string& detail = LibbpfMessages::first_warning();
  if (!detail.empty()) what += " (" + detail + ")";
  auto failure = FailErrno(error, what);
  return Fail(failure.error().code(),
              failure.error().message() + WhyNoProgramHere());
}

ksym::Result<uint32_t> FindDumpIterator() {
  auto id = KernelBtfFunction("bpf_iter_task");
  if (id || id.error().code() != ksym::ErrorCode::kNotFound) return id;
  return Fail(ksym::ErrorCode::kUnsupported,
              "threads are walked over by BPF, which this kernel cannot (it "
              "needs Linux 5.8 with its types, CONFIG_DEBUG_INFO_BTF)");
}

ProgramHandler::Kind IteratorKind(bool reads_stacks) {
  return reads_stacks ? ProgramHandler::Kind::kSleepingIterator
                      : ProgramHandler::Kind::kIterator;
}

}  // namespace

class BpfObject::Impl {
 public:
  // Members in the order they are made, so that they go in reverse.
  std::unique_ptr<profile_bpf, SkeletonDeleter> skeleton;
  std::vector<LinkPtr> links;
  std::optional<RingReader> ring;  // of the exact store
  bool used_minimal_btf = false;
  bool watches_modules = false;
  uint64_t module_changes = 0;  // as of the last ModulesChanged()

  int CountsFd(uint32_t set) const {
    return bpf_map__fd(set == 0 ? skeleton->maps.counts_0
                                : skeleton->maps.counts_1);
  }
  int SeenFd(uint32_t set) const {
    return bpf_map__fd(set == 0 ? skeleton->maps.seen_0
                                : skeleton->maps.seen_1);
  }
  int TracesFd(uint32_t set) const {
    return bpf_map__fd(set == 0 ? skeleton->maps.traces_0
                                : skeleton->maps.traces_1);
  }

  // Opens and loads the object; `btf_path` null: libbpf finds the kernel's BTF.
  ksym::Status Load(const BpfConfig& config, const char* btf_path) {
    auto opened = Open(config, btf_path);
    return opened ? LoadOpened() : opened;
  }

  // Without the small copy libbpf would keep the kernel's BTF in memory
  // twice, which costs 12 MB and 15 ms. Any failure means: do without it.
  ksym::Status LoadWithMinimalBtf(const BpfConfig& config) {
    const ksym::UniqueFd copy(::memfd_create("minimal.btf", MFD_CLOEXEC));
    if (!copy.valid()) return FailErrno(errno, "memfd_create");
    const std::string path = fmt::format("/proc/self/fd/{}", copy.get());
    // The object says which types it asks for, so it is opened before the file
    // has any: libbpf reads that when it loads.
    auto opened = Open(config, path.c_str());
    if (!opened) return opened;
    uint32_t size = 0;
    const void* data = btf__raw_data(bpf_object__btf(skeleton->obj), &size);
    const auto minimal = CachedKernelBtf(
        config.cache_directory,
        {.kernel_build_id = RunningKernelBuildId(),
         .object_btf = {static_cast<const std::byte*>(data), size}});
    if (!minimal) return Fail(minimal.error());
    auto written = ksym::WriteAll(
        copy.get(),
        {reinterpret_cast<const char*>(minimal->data()), minimal->size()});
    return written ? LoadOpened() : written;
  }

  ksym::Status Follow() {
    for (bpf_program* program :
         {skeleton->progs.follow_fork, skeleton->progs.follow_free}) {
      LinkPtr link(bpf_program__attach(program));
      if (!link) return FailErrno(errno, "following child processes");
      links.push_back(std::move(link));
    }
    return {};
  }

  // Best effort: where the tracepoints cannot be had there are uevents. Both or
  // none: with one alone, half of the changes would be missed without a sign.
  void WatchModules() {
    std::vector<LinkPtr> attached;
    for (bpf_program* program :
         {skeleton->progs.module_loaded, skeleton->progs.module_freed}) {
      if (!bpf_program__autoload(program)) return;
      LinkPtr link(bpf_program__attach(program));
      if (!link) return;
      attached.push_back(std::move(link));
    }
    watches_modules = true;
    std::ranges::move(attached, std::back_inserter(links));
  }

  ksym::Status OpenRing() {
    auto opened = RingReader::Open(bpf_map__fd(skeleton->maps.ring),
                                   bpf_map__max_entries(skeleton->maps.ring));
    if (!opened) return Fail(std::move(opened.error()));
    ring = std::move(*opened);
    return {};
  }

 private:
  ksym::Status Open(const BpfConfig& config, const char* btf_path) {
    bpf_object_open_opts options = {};
    options.sz = sizeof(options);
    options.btf_custom_path = btf_path;
    skeleton.reset(profile_bpf__open_opts(&options));
    if (!skeleton) return LoadFailure(errno);
    return ConfigureBpf(config, *skeleton);
  }

  ksym::Status LoadOpened() {
    const int error = profile_bpf__load(skeleton.get());
    if (error != 0) return LoadFailure(-error);
    return {};
  }
};

BpfObject::BpfObject(std::unique_ptr<Impl> impl, StackStore store)
    : impl_(std::move(impl)), store_(store) {}
BpfObject::BpfObject(BpfObject&&) noexcept = default;
BpfObject& BpfObject::operator=(BpfObject&&) noexcept = default;
BpfObject::~BpfObject() = default;

ksym::Result<BpfObject> BpfObject::Load(const BpfConfig& config) {
  const LibbpfMessages messages(config.verbosity);
  auto impl = std::make_unique<Impl>();
  std::optional<ProgramHandler> iterator;
  std::optional<ProgramHandler> at_switch;
  std::optional<ProgramHandler> at_waking;
  if (config.waits) {
    const WaitKernel& kernel = config.waits->kernel;
    iterator.emplace(IteratorKind(kernel.reads_stacks), kernel.iterator_id);
    at_switch.emplace(ProgramHandler::Kind::kSwitch, kernel.switch_id);
    at_waking.emplace(ProgramHandler::Kind::kWaking,
                      config.waits->waker_kernel.waking_id);
  } else if (config.dump != ThreadDump::kNone) {
    const auto id = FindDumpIterator();
    if (!id) return Fail(id.error());
    iterator.emplace(IteratorKind(config.dump == ThreadDump::kAllStacks), *id);
  }
  // A small BTF may lack what this kernel needs, and a cached one may be wrong:
  // that decides nothing. Only when the kernel's own BTF fails as well, the
  // programs cannot be loaded.
  auto loaded = impl->LoadWithMinimalBtf(config);
  impl->used_minimal_btf = loaded.has_value();
  if (!loaded) loaded = impl->Load(config, nullptr);
  if (!loaded) return Fail(std::move(loaded.error()));

  // Filters come before everything that asks them: the followed forks of
  // selected processes here, samples when events are enabled.
  auto filled = FillFilters(config, *impl->skeleton);
  if (!filled) return Fail(std::move(filled.error()));
  if (config.follow_children) {
    auto followed = impl->Follow();
    if (!followed) return Fail(std::move(followed.error()));
  }
  impl->WatchModules();
  if (config.store == StackStore::kExact) {
    auto opened = impl->OpenRing();
    if (!opened) return Fail(std::move(opened.error()));
  }
  return BpfObject(std::move(impl), config.store);
}

bool BpfObject::watches_modules() const { return impl_->watches_modules; }

bool BpfObject::used_minimal_btf() const { return impl_->used_minimal_btf; }

int BpfObject::program_fd() const {
  // ConfigurePrograms() has one of them loaded.
  const auto& programs = impl_->skeleton->progs;
  for (const bpf_program* program :
       {programs.sample_exact, programs.sample_by_loop,
        programs.sample_by_steps}) {
    if (bpf_program__autoload(program)) return bpf_program__fd(program);
  }
  return bpf_program__fd(programs.sample_stackid);
}

WaitParts BpfObject::wait_parts() const {
  const auto& programs = impl_->skeleton->progs;
  const auto& maps = impl_->skeleton->maps;
  auto* const bss = impl_->skeleton->bss;
  // ConfigurePrograms() has one of each loaded, and the last if asked for.
  const auto loaded = [](std::initializer_list<const bpf_program*> several) {
    const auto* found = std::ranges::find_if(several, &bpf_program__autoload);
    return found == several.end() ? -1 : bpf_program__fd(*found);
  };
  return {.switch_fd = bpf_program__fd(programs.wait_switch),
          .resumes_fd = loaded({programs.wait_resumes_by_loop,
                                programs.wait_resumes_by_steps,
                                programs.wait_resumes_by_kernel}),
          .threads_fd =
              loaded({programs.wait_threads, programs.wait_kernel_threads}),
          .waking_fd = loaded({programs.waker_by_loop, programs.waker_by_steps,
                               programs.waker_by_kernel}),
          .cpus_fd = bpf_map__fd(maps.wait_cpus),
          .bells_fd = bpf_map__fd(maps.wait_bells),
          .waits_fds = {bpf_map__fd(maps.waits_0), bpf_map__fd(maps.waits_1)},
          .own_tid = &bss->wait_own_tid,
          .clock_offset = &bss->wait_clock_offset,
          .from = &bss->wait_from,
          .until = &bss->wait_until,
          .walk_until = &bss->wait_walk_until,
          .stacks_left = &bss->wait_stacks_left,
          .put_off = &bss->wait_put_off,
          .began_by = &impl_->skeleton->data->wait_began_by};
}

int BpfObject::known_threads_fd() const {
  return bpf_map__fd(impl_->skeleton->maps.wait_known_threads);
}

int BpfObject::dump_fd() const {
  const auto& programs = impl_->skeleton->progs;
  return bpf_program__fd(dumps_user_stacks() ? programs.dump_threads
                                             : programs.dump_kernel_stacks);
}

bool BpfObject::dumps_user_stacks() const {
  return bpf_program__autoload(impl_->skeleton->progs.dump_threads);
}

UnwindMapFds BpfObject::unwind_maps() const {
  const auto& maps = impl_->skeleton->maps;
  return {.processes = bpf_map__fd(maps.unwind_processes),
          .mappings = bpf_map__fd(maps.unwind_mappings),
          .shards = bpf_map__fd(maps.unwind_shards)};
}

RuntimeMapFds BpfObject::runtime_maps() const {
  const auto& maps = impl_->skeleton->maps;
  return {.processes = bpf_map__fd(maps.runtime_processes),
          .files = bpf_map__fd(maps.runtime_files),
          .codes = bpf_map__fd(maps.runtime_codes),
          .v8 = bpf_map__fd(maps.runtime_v8),
          .hotspot = bpf_map__fd(maps.hotspot_processes)};
}

uint32_t* BpfObject::runtime_known() const {
  return &impl_->skeleton->bss->runtime_known;
}

uint32_t BpfObject::Flip() {
  // The map behind .bss is shared with the kernel; a program reads it once per
  // sample. Those that have read the old number write to the old set on: it is
  // whole after a grace period, and not to be taken before.
  uint32_t* active = &impl_->skeleton->bss->active_set;
  const uint32_t old = __atomic_load_n(active, __ATOMIC_RELAXED);
  __atomic_store_n(active, 1 - old, __ATOMIC_RELEASE);
  return old;
}

void BpfObject::SetSlicePhase(uint64_t phase_ns) {
  __atomic_store_n(&impl_->skeleton->bss->slice_phase_ns, phase_ns,
                   __ATOMIC_RELAXED);
}

bool BpfObject::tells_slices() const {
  return impl_->skeleton->rodata->wants_slices != 0;
}

void BpfObject::SetCopyChunks(uint32_t chunks) {
  __atomic_store_n(&impl_->skeleton->data->copy_chunks, chunks,
                   __ATOMIC_RELAXED);
}

void BpfObject::AllowCopies(uint64_t bytes) {
  // A bound on a sum that only grows: no program has to take anything back, and
  // a copy that is sent at this moment just leaves less.
  const uint64_t sent =
      __atomic_load_n(&impl_->skeleton->bss->copy_bytes_sent, __ATOMIC_RELAXED);
  __atomic_store_n(&impl_->skeleton->bss->copy_bytes_allowed, sent + bytes,
                   __ATOMIC_RELAXED);
}

bool BpfObject::ModulesChanged() {
  const uint64_t now =
      __atomic_load_n(&impl_->skeleton->bss->module_changes, __ATOMIC_RELAXED);
  return std::exchange(impl_->module_changes, now) != now;
}

void BpfObject::ConsumeRecords(const RecordHandler& handler) {
  std::optional<RingReader>& ring = impl_->ring;
  if (!ring) return;
  ring->Consume([&](std::span<const std::byte> record) {
    if (record.size() < sizeof(profile_record)) return;
    handler(*reinterpret_cast<const profile_record*>(record.data()),
            record.size());
  });
}

int BpfObject::ring_fd() const {
  return store_ == StackStore::kExact ? bpf_map__fd(impl_->skeleton->maps.ring)
                                      : -1;
}

uint64_t BpfObject::news() const {
  return __atomic_load_n(&impl_->skeleton->bss->news, __ATOMIC_SEQ_CST);
}

void BpfObject::WantBell() {
  // Before news() is read: a program counts first and looks at this then.
  __atomic_store_n(&impl_->skeleton->bss->bell_wanted, 1, __ATOMIC_SEQ_CST);
}

ksym::Result<std::vector<SampledCount>> BpfObject::TakeCounts(uint32_t set) {
  std::vector<SampledCount> counts;
  auto taken = TakeAll<profile_key, uint64_t>(
      impl_->CountsFd(set), [&](const profile_key& key, uint64_t count) {
        counts.push_back({.key = key, .count = count});
      });
  if (!taken) return Fail(std::move(taken.error()));
  return counts;
}

ksym::Status BpfObject::ClearStacks(uint32_t set) {
  if (store_ == StackStore::kExact) {
    return TakeAll<uint64_t, uint8_t>(impl_->SeenFd(set),
                                      [](uint64_t, uint8_t) {});
  }
  // Stack trace maps have no batches.
  const int fd = impl_->TracesFd(set);
  uint32_t bucket = 0;
  // Always the first one that is left, as one that was deleted has no next.
  while (bpf_map_get_next_key(fd, nullptr, &bucket) == 0) {
    if (bpf_map_delete_elem(fd, &bucket) != 0) {
      return FailErrno(errno, "clearing the stack trace map");
    }
  }
  return {};
}

std::vector<uint64_t> BpfObject::ReadStackTrace(uint32_t set,
                                                uint32_t bucket) const {
  std::vector<uint64_t> frames(PROFILE_MAX_DEPTH, 0);
  if (bpf_map_lookup_elem(impl_->TracesFd(set), &bucket, frames.data()) != 0) {
    return {};
  }
  // The kernel fills up with zeros (bpf_stackmap_copy() in
  // kernel/bpf/stackmap.c).
  frames.erase(std::ranges::find(frames, uint64_t{0}), frames.end());
  return frames;
}

ksym::Result<profile_stats> BpfObject::ReadStats(uint32_t set) const {
  const int cpus = libbpf_num_possible_cpus();
  if (cpus < 0) return FailErrno(-cpus, "counting the possible CPUs");
  // A look-up writes the values of all possible CPUs, also of those that are
  // offline.
  std::vector<profile_stats> per_cpu(static_cast<size_t>(cpus));
  if (bpf_map_lookup_elem(bpf_map__fd(impl_->skeleton->maps.stats), &set,
                          per_cpu.data()) != 0) {
    return FailErrno(errno, "reading the BPF counters");
  }
  profile_stats sum = {};
  for (const profile_stats& one : per_cpu) AddStats(one, sum);
  return sum;
}

bool KernelHasRingBuffer() {
  return libbpf_probe_bpf_map_type(BPF_MAP_TYPE_RINGBUF, nullptr) > 0;
}

bool KernelHasBpfLoop() {
  return libbpf_probe_bpf_helper(BPF_PROG_TYPE_PERF_EVENT, BPF_FUNC_loop,
                                 nullptr) > 0;
}

bool KernelHasTaskPtRegs() {
  return libbpf_probe_bpf_helper(BPF_PROG_TYPE_PERF_EVENT,
                                 BPF_FUNC_task_pt_regs, nullptr) > 0;
}

bool KernelHasThreadMemory() {
  return KernelBtfFunction("bpf_copy_from_user_task").has_value();
}

}  // namespace profd
