#include "daemon/capture/side_band.h"

#include <fmt/format.h>
#include <linux/perf_event.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <iterator>
#include <utility>

#include "ksym/base/unique_fd.h"

namespace profd {
namespace {

// A mapping's, with the longest path (perf_event_mmap_event() in the kernel).
constexpr size_t kLargestRecord = 4096 + 256;

perf_event_attr Attributes(SideBand::Options options) {
  perf_event_attr attr = {};
  attr.size = sizeof(attr);
  attr.type = PERF_TYPE_SOFTWARE;
  attr.config = PERF_COUNT_SW_DUMMY;
  attr.sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_TIME;
  attr.sample_id_all = 1;
  attr.ksymbol = options.kernel_symbols ? 1 : 0;
  if (options.processes) {
    attr.mmap = 1;
    attr.mmap2 = 1;
    attr.comm = 1;
    attr.comm_exec = 1;
    attr.task = 1;
  }
  attr.use_clockid = 1;
  attr.clockid = CLOCK_MONOTONIC;
  attr.watermark = 1;
  attr.wakeup_watermark = SideBand::kRingBytes;
  return attr;
}

}  // namespace

// The memory of one ring buffer; see perf_event_open(2), "MMAP layout".
class SideBand::Ring {
 public:
  static ksym::Result<std::unique_ptr<Ring>> Open(Options options,
                                                  uint32_t cpu) {
    perf_event_attr attr = Attributes(options);
    ksym::UniqueFd fd(static_cast<int>(
        ::syscall(SYS_perf_event_open, &attr, /*pid=*/-1, static_cast<int>(cpu),
                  /*group_fd=*/-1, PERF_FLAG_FD_CLOEXEC)));
    const std::string what = fmt::format("side band of CPU {}", cpu);
    if (!fd.valid()) return ksym::FailErrno(errno, what);
    const auto page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
    void* memory = ::mmap(nullptr, page + kRingBytes, PROT_READ | PROT_WRITE,
                          MAP_SHARED, fd.get(), 0);
    if (memory == MAP_FAILED) return ksym::FailErrno(errno, what);
    return std::unique_ptr<Ring>(new Ring(std::move(fd), memory, page));
  }
  ~Ring() { ::munmap(memory_, page_ + kRingBytes); }
  Ring(const Ring&) = delete;
  Ring& operator=(const Ring&) = delete;

  void Read(std::vector<SideBandEvent>& events) {
    // Pairs with the barrier in perf_output_put_handle().
    const uint64_t head = __atomic_load_n(&page()->data_head, __ATOMIC_ACQUIRE);
    uint64_t tail = page()->data_tail;
    if (tail == head) return;
    // The kernel tells of a loss with the next record that fits, which may be
    // much later.
    const bool is_full = head - tail > kRingBytes - kLargestRecord;
    bool was_full = std::exchange(was_full_, is_full);
    uint64_t last_ns = 0;
    std::vector<std::byte> record;
    while (tail < head) {
      perf_event_header header = {};
      Copy(tail, std::as_writable_bytes(std::span(&header, 1)));
      if (header.size < sizeof(header) || header.size > head - tail) break;
      record.resize(header.size);
      Copy(tail, record);
      SideBandEvent event = ParseSideBandRecord(record);
      last_ns = std::max(last_ns, event.time_ns);
      auto* lost = std::get_if<LostReport>(&event.report);
      if (lost != nullptr && was_full) {
        *lost = {.count = lost->count - 1, .is_known = true};
      }
      was_full = false;  // it was the first record behind
      if (event.report.index() != 0) events.push_back(std::move(event));
      tail += header.size;
    }
    if (is_full) {
      events.push_back({.time_ns = last_ns, .report = LostReport{.count = 1}});
    }
    __atomic_store_n(&page()->data_tail, tail, __ATOMIC_RELEASE);
  }

 private:
  Ring(ksym::UniqueFd fd, void* memory, size_t page)
      : fd_(std::move(fd)), memory_(memory), page_(page) {}

  perf_event_mmap_page* page() const {
    return static_cast<perf_event_mmap_page*>(memory_);
  }

  // Records may wrap around the ring's end.
  void Copy(uint64_t position, std::span<std::byte> out) const {
    const auto* data = static_cast<const std::byte*>(memory_) + page_;
    const size_t begin = position % kRingBytes;
    const size_t first = std::min(out.size(), kRingBytes - begin);
    std::memcpy(out.data(), data + begin, first);
    std::memcpy(out.data() + first, data, out.size() - first);
  }

  ksym::UniqueFd fd_;
  void* memory_;
  size_t page_;
  bool was_full_ = false;  // nearly, when it was last read
};

SideBand::SideBand(Options options) : options_(options) {}
SideBand::~SideBand() = default;
SideBand::SideBand(SideBand&&) noexcept = default;
SideBand& SideBand::operator=(SideBand&&) noexcept = default;

ksym::Status SideBand::Follow(const CpuList& online) {
  // The event of a CPU that left is dead, also when the CPU comes back.
  std::erase_if(rings_, [&](auto& entry) {
    if (std::ranges::binary_search(online, entry.first)) return false;
    entry.second->Read(waiting_);
    return true;
  });
  for (const uint32_t cpu : online) {
    if (rings_.contains(cpu)) continue;
    auto ring = Ring::Open(options_, cpu);
    if (!ring) {
      // The CPU went away again.
      if (ring.error().code() == ksym::ErrorCode::kNotFound) continue;
      return ksym::Fail(std::move(ring.error()));
    }
    rings_.emplace(cpu, std::move(*ring));
    // Since the CPU came nobody listened there.
    if (was_followed_) waiting_.push_back({.report = LostReport{.count = 1}});
  }
  was_followed_ = true;
  return {};
}

std::vector<SideBandEvent> SideBand::Read(uint64_t until_ns) {
  std::vector<SideBandEvent> events = std::exchange(waiting_, {});
  for (auto& [cpu, ring] : rings_) ring->Read(events);
  std::ranges::stable_sort(events, {}, &SideBandEvent::time_ns);
  const auto later =
      std::ranges::upper_bound(events, until_ns, {}, &SideBandEvent::time_ns);
  waiting_.assign(std::make_move_iterator(later),
                  std::make_move_iterator(events.end()));
  events.erase(later, events.end());
  return events;
}

}  // namespace profd
