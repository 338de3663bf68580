// SPDX-License-Identifier: Apache-2.0
#include "daemon/perf/perf_event.h"

#include <fmt/format.h>
#include <linux/perf_event.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <utility>

#include "daemon/perf/privileges.h"
#include "ksym/base/file.h"
#include "ksym/base/text.h"

namespace profd {
namespace {

using ksym::ErrorCode;

struct NamedEvent {
  std::string_view name;
  uint32_t type;
  uint64_t config;
};

constexpr std::array kEvents = {
    NamedEvent{"cycles", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES},
    NamedEvent{"cpu-cycles", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES},
    NamedEvent{"ref-cycles", PERF_TYPE_HARDWARE, PERF_COUNT_HW_REF_CPU_CYCLES},
    NamedEvent{"bus-cycles", PERF_TYPE_HARDWARE, PERF_COUNT_HW_BUS_CYCLES},
    NamedEvent{"instructions", PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS},
    NamedEvent{"branches", PERF_TYPE_HARDWARE,
               PERF_COUNT_HW_BRANCH_INSTRUCTIONS},
    NamedEvent{"branch-misses", PERF_TYPE_HARDWARE,
               PERF_COUNT_HW_BRANCH_MISSES},
    NamedEvent{"cache-references", PERF_TYPE_HARDWARE,
               PERF_COUNT_HW_CACHE_REFERENCES},
    NamedEvent{"cache-misses", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_MISSES},
    NamedEvent{"stalled-cycles-frontend", PERF_TYPE_HARDWARE,
               PERF_COUNT_HW_STALLED_CYCLES_FRONTEND},
    NamedEvent{"stalled-cycles-backend", PERF_TYPE_HARDWARE,
               PERF_COUNT_HW_STALLED_CYCLES_BACKEND},
    NamedEvent{"cpu-clock", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK},
    NamedEvent{"task-clock", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK},
    NamedEvent{"page-faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS},
    NamedEvent{"minor-faults", PERF_TYPE_SOFTWARE,
               PERF_COUNT_SW_PAGE_FAULTS_MIN},
    NamedEvent{"major-faults", PERF_TYPE_SOFTWARE,
               PERF_COUNT_SW_PAGE_FAULTS_MAJ},
    NamedEvent{"context-switches", PERF_TYPE_SOFTWARE,
               PERF_COUNT_SW_CONTEXT_SWITCHES},
    NamedEvent{"cpu-migrations", PERF_TYPE_SOFTWARE,
               PERF_COUNT_SW_CPU_MIGRATIONS},
    NamedEvent{"alignment-faults", PERF_TYPE_SOFTWARE,
               PERF_COUNT_SW_ALIGNMENT_FAULTS},
};

uint64_t MaxSampleRate() {
  const auto text =
      ksym::ReadFile("/proc/sys/kernel/perf_event_max_sample_rate", 64);
  if (!text) return 0;
  std::string_view line = *text;
  return ksym::ParseUnsigned(ksym::TakeField(line, '\n'), 10).value_or(0);
}

std::unexpected<ksym::Error> OpenFailure(int error, const EventSpec& spec,
                                         SamplingRate rate, uint32_t cpu) {
  const uint64_t limit = MaxSampleRate();
  // perf_event_open(2) has the same errno for other mistakes.
  if (error == EINVAL && limit != 0 && rate.frequency_hz > limit) {
    return ksym::Fail(
        ErrorCode::kInvalid,
        fmt::format("{} Hz is above kernel.perf_event_max_sample_rate, which "
                    "is {}: lower -F or raise the sysctl",
                    rate.frequency_hz, limit));
  }
  auto failure = ksym::FailErrno(
      error, fmt::format("perf_event_open({}) on CPU {}", spec.name, cpu));
  if (failure.error().code() != ErrorCode::kPermission) return failure;
  return ksym::Fail(ErrorCode::kPermission,
                    failure.error().message() + WhyNoEventsHere());
}

}  // namespace

ksym::Result<EventSpec> ParseEvent(std::string_view name) {
  for (const NamedEvent& event : kEvents) {
    if (event.name == name) {
      return EventSpec{std::string(name), event.type, event.config};
    }
  }
  if (name.starts_with('r')) {
    if (const auto code = ksym::ParseUnsigned(name.substr(1), 16)) {
      return EventSpec{std::string(name), PERF_TYPE_RAW, *code};
    }
  }
  std::string known;
  for (const NamedEvent& event : kEvents) {
    known += event.name;
    known += ' ';
  }
  return ksym::Fail(
      ErrorCode::kInvalid,
      fmt::format("unknown event '{}': there are {}and rHEX", name, known));
}

ksym::Result<SamplingEvent> SamplingEvent::Open(const EventSpec& spec,
                                                SamplingRate rate,
                                                IdleSamples idle,
                                                uint32_t cpu) {
  perf_event_attr attr = {};
  attr.size = sizeof(attr);
  attr.type = spec.type;
  attr.config = spec.config;
  // It has no program yet; Enable() comes when all CPUs have theirs.
  attr.disabled = 1;
  attr.exclude_idle = idle == IdleSamples::kExclude ? 1 : 0;
  attr.read_format = kEventTimesFormat;
  if (rate.frequency_hz != 0) {
    attr.freq = 1;
    attr.sample_freq = rate.frequency_hz;
  } else {
    attr.sample_period = rate.count_period;
  }
  const long fd =
      ::syscall(SYS_perf_event_open, &attr, /*pid=*/-1, static_cast<int>(cpu),
                /*group_fd=*/-1, PERF_FLAG_FD_CLOEXEC);
  if (fd < 0) return OpenFailure(errno, spec, rate, cpu);
  return SamplingEvent(ksym::UniqueFd(static_cast<int>(fd)));
}

ksym::Status SamplingEvent::AttachProgram(int program_fd) {
  if (::ioctl(fd_.get(), PERF_EVENT_IOC_SET_BPF, program_fd) != 0) {
    return ksym::FailErrno(errno, "attaching the BPF program");
  }
  return {};
}

ksym::Status SamplingEvent::Enable() {
  if (::ioctl(fd_.get(), PERF_EVENT_IOC_ENABLE, 0) != 0) {
    return ksym::FailErrno(errno, "enabling the sampling event");
  }
  return {};
}

void SamplingEvent::Disable() {
  // Fails only for a descriptor that is not an event.
  ::ioctl(fd_.get(), PERF_EVENT_IOC_DISABLE, 0);
}

ksym::Result<EventSpec> ChooseEvent(std::string_view wish, SamplingRate rate,
                                    uint32_t cpu) {
  auto spec = ParseEvent(wish.empty() ? "cycles" : wish);
  if (!spec) return spec;
  // Only opening it tells whether the machine has it.
  const auto tried =
      SamplingEvent::Open(*spec, rate, IdleSamples::kExclude, cpu);
  if (tried) return spec;
  if (!wish.empty()) {
    if (spec->type == PERF_TYPE_HARDWARE &&
        tried.error().code() != ErrorCode::kPermission &&
        tried.error().code() != ErrorCode::kInvalid) {
      return ksym::Fail(ErrorCode::kNotFound,
                        fmt::format("this machine has no hardware counter for "
                                    "'{}' ({}): leave -e out, or take "
                                    "-e cpu-clock",
                                    wish, tried.error().message()));
    }
    return ksym::Fail(tried.error());
  }
  // All events need the same permission, so the reason is told at once. Other
  // failures are the want of a counter for the most part, as in most virtual
  // machines; if not, cpu-clock fails in the same way.
  if (tried.error().code() == ErrorCode::kPermission) {
    return ksym::Fail(tried.error());
  }
  return ParseEvent("cpu-clock");
}

}  // namespace profd
