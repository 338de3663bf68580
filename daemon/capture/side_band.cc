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
#include <utility>

#include "ksym/base/byte_reader.h"

namespace profd {
namespace {

// What sample_id_all appends to each record for SAMPLE_TID | SAMPLE_TIME.
constexpr size_t kSampleIdBytes = 16;

perf_event_attr DummyAttributes() {
  perf_event_attr attr = {};
  attr.size = sizeof(attr);
  attr.type = PERF_TYPE_SOFTWARE;
  attr.config = PERF_COUNT_SW_DUMMY;
  attr.sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_TIME;
  attr.sample_id_all = 1;
  attr.ksymbol = 1;
  attr.use_clockid = 1;
  attr.clockid = CLOCK_MONOTONIC;
  attr.watermark = 1;
  attr.wakeup_watermark = SideBand::kRingBytes;
  return attr;
}

uint64_t TimeOf(std::span<const std::byte> record) {
  ksym::ByteReader reader(record.last(kSampleIdBytes));
  reader.Read<uint64_t>();  // pid, tid
  return reader.Read<uint64_t>();
}

}  // namespace

std::optional<SideBandEvent> ParseSideBandRecord(
    std::span<const std::byte> record) {
  if (record.size() < sizeof(perf_event_header) + kSampleIdBytes) {
    return std::nullopt;
  }
  ksym::ByteReader reader(record.first(record.size() - kSampleIdBytes));
  const auto type = reader.Read<uint32_t>();
  reader.Read<uint32_t>();  // misc, size
  SideBandEvent event;
  event.time_ns = TimeOf(record);
  if (type == PERF_RECORD_LOST) {
    reader.Read<uint64_t>();  // id
    event.kind = SideBandEvent::Kind::kLost;
    event.lost = reader.Read<uint64_t>();
    return reader.ok() ? std::optional(std::move(event)) : std::nullopt;
  }
  if (type != PERF_RECORD_KSYMBOL) return std::nullopt;
  event.address = reader.Read<uint64_t>();
  event.size = reader.Read<uint32_t>();
  event.is_bpf = reader.Read<uint16_t>() == PERF_RECORD_KSYMBOL_TYPE_BPF;
  const auto flags = reader.Read<uint16_t>();
  event.kind = (flags & PERF_RECORD_KSYMBOL_FLAGS_UNREGISTER) != 0
                   ? SideBandEvent::Kind::kSymbolRemoved
                   : SideBandEvent::Kind::kSymbolAdded;
  if (!reader.ok()) return std::nullopt;
  const std::string_view name = reader.ReadString(reader.remaining());
  event.name = name.substr(0, name.find('\0'));
  return event;
}

// The memory of one ring buffer; see perf_event_open(2), "MMAP layout".
class SideBand::Ring {
 public:
  static ksym::Result<std::unique_ptr<Ring>> Open(uint32_t cpu) {
    perf_event_attr attr = DummyAttributes();
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
    std::vector<std::byte> record;
    while (tail < head) {
      perf_event_header header = {};
      Copy(tail, std::as_writable_bytes(std::span(&header, 1)));
      if (header.size < sizeof(header) || header.size > head - tail) break;
      record.resize(header.size);
      Copy(tail, record);
      if (auto event = ParseSideBandRecord(record)) {
        events.push_back(std::move(*event));
      }
      tail += header.size;
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
};

SideBand::SideBand() = default;
SideBand::~SideBand() = default;
SideBand::SideBand(SideBand&&) noexcept = default;
SideBand& SideBand::operator=(SideBand&&) noexcept = default;

ksym::Status SideBand::Follow(const CpuList& online) {
  // The event of a CPU that left is dead, also when the CPU comes back.
  std::erase_if(rings_, [&](auto& entry) {
    if (std::ranges::binary_search(online, entry.first)) return false;
    entry.second->Read(of_closed_rings_);
    return true;
  });
  for (const uint32_t cpu : online) {
    if (rings_.contains(cpu)) continue;
    auto ring = Ring::Open(cpu);
    if (!ring) {
      // The CPU went away again.
      if (ring.error().code() == ksym::ErrorCode::kNotFound) continue;
      return ksym::Fail(std::move(ring.error()));
    }
    rings_.emplace(cpu, std::move(*ring));
  }
  return {};
}

std::vector<SideBandEvent> SideBand::Read() {
  std::vector<SideBandEvent> events = std::exchange(of_closed_rings_, {});
  for (auto& [cpu, ring] : rings_) ring->Read(events);
  std::ranges::stable_sort(events, {}, &SideBandEvent::time_ns);
  return events;
}

}  // namespace profd
