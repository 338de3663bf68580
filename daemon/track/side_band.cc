// SPDX-License-Identifier: Apache-2.0
#include "daemon/track/side_band.h"

#include <fmt/format.h>
#include <linux/perf_event.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <iterator>
#include <unordered_map>
#include <utility>

#include "daemon/base/now_ns.h"
#include "daemon/perf/event_times.h"
#include "ksym/base/unique_fd.h"

namespace profd {
namespace {

// A mapping's, with the longest path (perf_event_mmap_event() in the kernel).
constexpr size_t kLargestRecord = 4096 + 256;

perf_event_attr Attributes(SideBand::Options options, LostReport::Of of,
                           size_t ring_bytes) {
  perf_event_attr attr = {};
  attr.size = sizeof(attr);
  // It counts nothing: an event that is there for its reports alone.
  attr.type = PERF_TYPE_SOFTWARE;
  attr.config = PERF_COUNT_SW_DUMMY;
  attr.read_format = kEventTimesFormat;
  // Each record ends with these (sample_id_all).
  attr.sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_TIME;
  attr.sample_id_all = 1;
  if (of == LostReport::Of::kMappings) {
    attr.mmap = 1;
    attr.mmap2 = 1;
  } else {
    attr.ksymbol = options.kernel_symbols ? 1 : 0;
    attr.comm = options.processes ? 1 : 0;
    attr.comm_exec = options.processes ? 1 : 0;
    attr.task = options.processes ? 1 : 0;
  }
  // The clock of bpf_ktime_get_ns(), so that reports and samples have an order.
  attr.use_clockid = 1;
  attr.clockid = CLOCK_MONOTONIC;
  // Nobody sleeps until a record comes, so none has to wake anybody up.
  attr.watermark = 1;
  attr.wakeup_watermark = static_cast<uint32_t>(ring_bytes);
  return attr;
}

}  // namespace

// The memory of one ring buffer; see perf_event_open(2), "MMAP layout".
class SideBand::Ring {
 public:
  static ksym::Result<std::unique_ptr<Ring>> Open(Options options,
                                                  LostReport::Of of,
                                                  uint32_t cpu, size_t bytes) {
    perf_event_attr attr = Attributes(options, of, bytes);
    ksym::UniqueFd fd(static_cast<int>(
        ::syscall(SYS_perf_event_open, &attr, /*pid=*/-1, static_cast<int>(cpu),
                  /*group_fd=*/-1, PERF_FLAG_FD_CLOEXEC)));
    const std::string what = fmt::format("side band of CPU {}", cpu);
    if (!fd.valid()) return ksym::FailErrno(errno, what);
    const auto page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
    // Writable, or the kernel would write over what has not been read
    // (perf_event_open(2)).
    void* memory = ::mmap(nullptr, page + bytes, PROT_READ | PROT_WRITE,
                          MAP_SHARED, fd.get(), 0);
    if (memory == MAP_FAILED) return ksym::FailErrno(errno, what);
    return std::unique_ptr<Ring>(
        new Ring(std::move(fd), memory, {.page = page, .bytes = bytes}, of));
  }
  ~Ring() { ::munmap(memory_, size_.page + size_.bytes); }
  Ring(const Ring&) = delete;
  Ring& operator=(const Ring&) = delete;

  // False: its CPU left since the last call, also if it is back.
  bool IsAlive() { return pulse_.Beats(ReadEventTimes(fd_.get())); }

  // True when it was a quarter full.
  bool Read(std::vector<SideBandEvent>& events) {
    // Pairs with the barrier in perf_output_put_handle().
    const uint64_t head = __atomic_load_n(&page()->data_head, __ATOMIC_ACQUIRE);
    uint64_t tail = page()->data_tail;
    if (tail == head) return false;
    const bool is_filling = head - tail > size_.bytes / 4;
    // The kernel tells of a loss with the next record that fits, which may be
    // much later.
    const bool is_full = head - tail > size_.bytes - kLargestRecord;
    bool was_full = std::exchange(was_full_, is_full);
    uint64_t last_ns = 0;
    std::vector<std::byte> record;
    std::unordered_map<uint32_t, size_t> maps;  // by process
    while (tail < head) {
      perf_event_header header = {};
      Copy(tail, std::as_writable_bytes(std::span(&header, 1)));
      if (header.size < sizeof(header) || header.size > head - tail) break;
      const bool is_passed_over =
          IsPassedOver(tail, header) ||
          (header.type == PERF_RECORD_MMAP2 && IsFlood(tail, header, maps));
      if (is_passed_over) {
        tail += header.size;
        was_full = false;
        continue;
      }
      record.resize(header.size);
      Copy(tail, record);
      SideBandEvent event = ParseSideBandRecord(record);
      last_ns = std::max(last_ns, event.time_ns);
      auto* lost = std::get_if<LostReport>(&event.report);
      if (lost != nullptr) {
        lost->of = of_;
        lost->count -= was_full ? 1 : 0;
        lost->is_known = was_full;
      }
      was_full = false;  // it was the first record behind
      if (event.report.index() != 0) events.push_back(std::move(event));
      tail += header.size;
    }
    for (const auto& [pid, count] : maps) {
      if (count <= kMaxMappingsOfOne) continue;
      events.push_back(
          {.time_ns = last_ns,
           .report = LostReport{
               .of = of_, .pid = pid, .count = count - kMaxMappingsOfOne}});
    }
    if (is_full) {
      events.push_back(
          {.time_ns = last_ns,
           .report = LostReport{.of = of_, .count = 1, .until_ns = NowNs()}});
    }
    // Last: the kernel writes over what lies before the tail.
    __atomic_store_n(&page()->data_tail, tail, __ATOMIC_RELEASE);
    return is_filling;
  }

 private:
  struct Size {
    size_t page = 0;  // in front of the records
    size_t bytes = 0;
  };
  Ring(ksym::UniqueFd fd, void* memory, Size size, LostReport::Of of)
      : fd_(std::move(fd)), memory_(memory), size_(size), of_(of) {}

  // True for a record that is not even to be decoded. An event that wants
  // mappings is told of forks and exits as well (perf_event_task_match() in the
  // kernel); the other ring has them, too.
  bool IsPassedOver(uint64_t position, const perf_event_header& header) const {
    const bool is_of_task = header.type == PERF_RECORD_FORK ||
                            header.type == PERF_RECORD_EXIT ||
                            header.type == PERF_RECORD_COMM;
    if (!is_of_task) return false;
    if (of_ == LostReport::Of::kMappings) return true;
    std::array<uint32_t, 3> ids = {};
    if (header.size < sizeof(header) + sizeof(ids)) return true;
    Copy(position + sizeof(header), std::as_writable_bytes(std::span(ids)));
    return IsOfThread(header, ids);
  }

  // Whether the process of that record had as many as it may before it. All of
  // them would take longer to decode than they are worth.
  bool IsFlood(uint64_t position, const perf_event_header& header,
               std::unordered_map<uint32_t, size_t>& maps) const {
    uint32_t pid = 0;
    if (header.size < sizeof(header) + sizeof(pid)) return false;
    Copy(position + sizeof(header), std::as_writable_bytes(std::span(&pid, 1)));
    return ++maps[pid] > kMaxMappingsOfOne;
  }

  perf_event_mmap_page* page() const {
    return static_cast<perf_event_mmap_page*>(memory_);
  }

  // Records may wrap around the ring's end.
  void Copy(uint64_t position, std::span<std::byte> out) const {
    const auto* data = static_cast<const std::byte*>(memory_) + size_.page;
    const size_t begin = position % size_.bytes;
    const size_t first = std::min(out.size(), size_.bytes - begin);
    std::memcpy(out.data(), data + begin, first);
    std::memcpy(out.data() + first, data, out.size() - first);
  }

  ksym::UniqueFd fd_;
  EventPulse pulse_;
  void* memory_;
  Size size_;
  LostReport::Of of_;
  bool was_full_ = false;  // nearly, when it was last read
};

SideBand::SideBand(Options options) : options_(options) {}
SideBand::~SideBand() = default;
SideBand::SideBand(SideBand&&) noexcept = default;
SideBand& SideBand::operator=(SideBand&&) noexcept = default;

ksym::Result<SideBand::Rings> SideBand::Open(uint32_t cpu, size_t cpus) const {
  // As large as may be locked.
  const auto open = [&](LostReport::Of of, size_t least) {
    const size_t bytes =
        std::clamp(std::bit_floor(kAllRingBytes / cpus), least, kMaxRingBytes);
    auto ring = Ring::Open(options_, of, cpu, bytes);
    // Locked memory has limits (kernel.perf_event_mlock_kb, RLIMIT_MEMLOCK),
    // which may have room for a small one.
    if (!ring && bytes > least) ring = Ring::Open(options_, of, cpu, least);
    return ring;
  };
  Rings rings;
  auto processes = open(LostReport::Of::kProcesses, kMinProcessBytes);
  if (!processes) return ksym::Fail(std::move(processes.error()));
  rings.processes = std::move(*processes);
  if (!options_.processes) return rings;
  auto mappings = open(LostReport::Of::kMappings, kMinMappingBytes);
  if (!mappings) return ksym::Fail(std::move(mappings.error()));
  rings.mappings = std::move(*mappings);
  return rings;
}

ksym::Status SideBand::Follow(const CpuList& online) {
  for (auto next = rings_.begin(); next != rings_.end();) {
    const auto member = next++;
    auto& [cpu, rings] = *member;
    // Both rings of a CPU die with it.
    if (std::ranges::binary_search(online, cpu) && rings.processes->IsAlive()) {
      continue;
    }
    // What happened before it left counts.
    rings.processes->Read(waiting_);
    if (rings.mappings) rings.mappings->Read(waiting_);
    rings_.erase(member);
  }
  for (const uint32_t cpu : online) {
    if (rings_.contains(cpu)) continue;
    auto rings = Open(cpu, online.size());
    if (!rings) {
      // The CPU went away again.
      if (rings.error().code() == ksym::ErrorCode::kNotFound) continue;
      return ksym::Fail(std::move(rings.error()));
    }
    rings_.emplace(cpu, std::move(*rings));
    // Since the CPU came nobody listened there.
    if (was_followed_) {
      waiting_.push_back(
          {.report = LostReport{.count = 1, .until_ns = NowNs()}});
    }
  }
  was_followed_ = true;
  return {};
}

void SideBand::Empty() {
  for (auto& [cpu, rings] : rings_) {
    was_filling_ |= rings.processes->Read(waiting_);
    if (rings.mappings) was_filling_ |= rings.mappings->Read(waiting_);
  }
}

std::vector<SideBandEvent> SideBand::Read(uint64_t until_ns) {
  Empty();
  is_filling_ = std::exchange(was_filling_, false);
  std::vector<SideBandEvent> events = std::exchange(waiting_, {});
  // Each CPU has its ring, and a process moves between CPUs. Reports that are
  // newer than the time that is asked for wait: an older report of another CPU
  // may still come.
  std::ranges::stable_sort(events, {}, &SideBandEvent::time_ns);
  const auto later =
      std::ranges::upper_bound(events, until_ns, {}, &SideBandEvent::time_ns);
  waiting_.assign(std::make_move_iterator(later),
                  std::make_move_iterator(events.end()));
  events.erase(later, events.end());
  return events;
}

}  // namespace profd
