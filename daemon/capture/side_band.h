#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "daemon/capture/cpu_list.h"
#include "ksym/base/result.h"
#include "ksym/base/unique_fd.h"

namespace profd {

// What the kernel reports beside the samples, in the order it happened.
struct SideBandEvent {
  enum class Kind : uint8_t {
    kSymbolAdded,    // a BPF program, trampoline or kprobe slot appeared
    kSymbolRemoved,  // and went
    kLost,           // `lost` records did not fit the ring
  };
  Kind kind = Kind::kLost;
  uint64_t time_ns = 0;  // CLOCK_MONOTONIC
  uint64_t address = 0;
  uint64_t size = 0;
  std::string name;
  bool is_bpf = false;  // else out of line: kprobes, ftrace
  uint64_t lost = 0;

  friend bool operator==(const SideBandEvent&, const SideBandEvent&) = default;
};

// Decodes one PERF_RECORD_KSYMBOL or PERF_RECORD_LOST with the sample_id that
// SideBand asks for (perf_event_open(2)); nothing for other types and for
// records that are too short for what they claim.
std::optional<SideBandEvent> ParseSideBandRecord(
    std::span<const std::byte> record);

// One dummy event per CPU whose ring receives those records. Needs
// CAP_PERFMON. Nothing is woken up: read it on a timer.
class SideBand {
 public:
  // 64 KiB a CPU hold about 700 records.
  static constexpr size_t kRingBytes = 64 * 1024;

  SideBand();
  ~SideBand();
  SideBand(SideBand&&) noexcept;
  SideBand& operator=(SideBand&&) noexcept;

  // Opens rings on CPUs that have none and closes those of CPUs that left;
  // what was in them is in the next Read().
  ksym::Status Follow(const CpuList& online);
  // Everything since the last call, sorted by time.
  std::vector<SideBandEvent> Read();

 private:
  class Ring;
  std::map<uint32_t, std::unique_ptr<Ring>> rings_;
  std::vector<SideBandEvent> of_closed_rings_;
};

}  // namespace profd
