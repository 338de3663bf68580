#include "daemon/capture/process_watch.h"

#include <dirent.h>
#include <fmt/format.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "ksym/base/file.h"
#include "ksym/base/text.h"

namespace profd {
namespace {

// Intervals without a sample after which a process's binding is forgotten.
constexpr uint64_t kKeptIntervals = 60;

template <typename... Visitors>
struct Overloaded : Visitors... {
  using Visitors::operator()...;
};

uint64_t NowNs() {
  timespec now = {};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 +
         static_cast<uint64_t>(now.tv_nsec);
}

const ksym::Mapping* FindMapping(const std::vector<ksym::Mapping>& mappings,
                                 ksym::Address address) {
  const auto next =
      std::ranges::upper_bound(mappings, address, {}, &ksym::Mapping::start);
  if (next == mappings.begin() || address >= std::prev(next)->end) {
    return nullptr;
  }
  return &*std::prev(next);
}

// A field of /proc/PID/stat (proc_pid_stat(5) numbers them from 1). The
// command in field 2 may contain anything, so fields are counted from its
// closing parenthesis.
std::optional<uint64_t> StatField(uint32_t pid, int wanted) {
  const auto stat = ksym::ReadFile(fmt::format("/proc/{}/stat", pid), 1 << 16);
  if (!stat) return std::nullopt;
  const size_t close = stat->rfind(')');
  if (close == std::string::npos) return std::nullopt;
  std::string_view rest = std::string_view(*stat).substr(close + 1);
  for (int field = 2; field < wanted; ++field) ksym::TakeField(rest, ' ');
  return ksym::ParseUnsigned(ksym::TakeField(rest, ' '), 10);
}

uint32_t CountThreads(uint32_t pid) {
  constexpr int kThreadsField = 20;
  return static_cast<uint32_t>(StatField(pid, kThreadsField).value_or(1));
}

// Whether /proc/PID still is the process of this start time.
bool IsSameProcess(const ksym::ProcessId& id) {
  static const auto kTicksPerSecond =
      static_cast<uint64_t>(::sysconf(_SC_CLK_TCK));
  constexpr int kStartTimeField = 22;  // in clock ticks since boot
  const auto ticks = StatField(id.pid, kStartTimeField);
  return ticks && *ticks == id.start_ns / (1'000'000'000 / kTicksPerSecond);
}

}  // namespace

void ProcessWatch::ReadAll() {
  DIR* proc = ::opendir("/proc");
  if (proc == nullptr) return;
  const std::unique_ptr<DIR, int (*)(DIR*)> closer(proc, &::closedir);
  while (const dirent* entry = ::readdir(proc)) {
    const auto pid = ksym::ParseUnsigned<uint32_t>(entry->d_name, 10);
    if (!pid) continue;
    auto mappings = ksym::ReadMaps(*pid);
    // Kernel threads have none, and others may be gone or not ours to see.
    if (!mappings || mappings->empty()) continue;
    history_.Seed({.pid = *pid,
                   .threads = CountThreads(*pid),
                   .mappings = std::move(*mappings)},
                  NowNs());
  }
}

void ProcessWatch::Apply(SideBandEvent event) {
  const uint64_t time = event.time_ns;
  std::visit(
      Overloaded{
          [&](const ForkReport& r) { history_.Fork(r.parent, r.child, time); },
          [&](const ExecReport& r) { history_.Exec(r.pid, time); },
          [&](MapReport& r) {
            history_.Map(r.pid, std::move(r.mapping), time);
          },
          [&](const ExitReport& r) { history_.Exit(r.pid, time); },
          [](const auto&) {}},
      event.report);
}

ProcessWatch::Bound& ProcessWatch::Bind(const ksym::ProcessId& id,
                                        uint64_t time_ns) {
  const auto [at, is_new] = bound_.try_emplace(id);
  Bound& bound = at->second;
  bound.seen_in = interval_;
  if (!is_new) return bound;
  bound.generation = history_.Find(id.pid, time_ns);
  // Its reports were lost; perhaps it still lives.
  if (bound.generation == 0) ReadAgain(id, bound);
  return bound;
}

void ProcessWatch::See(const ksym::ProcessId& id, uint64_t time_ns) {
  if (id.pid != 0) Bind(id, time_ns);  // 0: idle, without an address space
}

void ProcessWatch::TellObserver() {
  if (!observer_) return;
  for (auto& [id, bound] : bound_) {
    const auto* mappings = history_.Mappings(bound.generation);
    if (mappings == nullptr) continue;
    const uint64_t version = history_.Version(bound.generation);
    if (bound.told && bound.told_version == version) continue;
    bound.told = true;
    bound.told_version = version;
    observer_({.id = id, .mappings = *mappings});
  }
}

void ProcessWatch::ReadAgain(const ksym::ProcessId& id, Bound& bound) {
  bound.read_in = interval_;
  const uint64_t now = NowNs();
  auto mappings = ksym::ReadMaps(id.pid);
  if (!mappings || mappings->empty() || !IsSameProcess(id)) return;
  const auto present = history_.Find(id.pid, now);
  // An exec since: what is there now is not what was sampled.
  if (bound.generation != 0 && present != bound.generation) return;
  history_.Seed({.pid = id.pid,
                 .threads = CountThreads(id.pid),
                 .mappings = std::move(*mappings)},
                now);
  bound.generation = history_.Find(id.pid, now);
}

ProcessWatch::Answer ProcessWatch::Find(const ksym::ProcessId& id,
                                        std::span<const uint64_t> frames) {
  Bound& bound = Bind(id, NowNs());
  const auto contains = [&](ksym::ProcessHistory::GenerationId generation,
                            uint64_t frame) {
    const auto* mappings = history_.Mappings(generation);
    return mappings != nullptr &&
           FindMapping(*mappings, ksym::Address{frame}) != nullptr;
  };
  const bool complete = std::ranges::all_of(frames, [&](uint64_t frame) {
    return contains(bound.generation, frame);
  });
  const auto previous = history_.Previous(bound.generation);
  Answer answer = {.id = id, .image = {}, .known = false};
  auto generation = bound.generation;
  if (!complete && !frames.empty() && !contains(generation, frames.front()) &&
      contains(previous, frames.front())) {
    generation = previous;
    --answer.id.exec_count;
  } else if (!complete && bound.read_in < interval_) {
    ReadAgain(id, bound);
    generation = bound.generation;
  }
  const auto* mappings = history_.Mappings(generation);
  if (mappings == nullptr || mappings->empty()) return answer;
  answer.image = {.id = answer.id, .mappings = *mappings};
  answer.known = true;
  return answer;
}

void ProcessWatch::EndInterval(uint64_t end_ns) {
  std::erase_if(bound_, [&](const auto& entry) {
    return entry.second.seen_in + kKeptIntervals < interval_;
  });
  history_.Forget(interval_begin_ns_);
  interval_begin_ns_ = end_ns;
  ++interval_;
}

}  // namespace profd
